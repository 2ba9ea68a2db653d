#include "base/tls.h"

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <string_view>

#include "base/atomic_file.h"
#include "base/status_macros.h"

namespace hetero::base {
namespace {

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Memory = std::unique_ptr<BIO, decltype(&BIO_free)>;

struct PemFiles {
  std::string ca;
  std::string certificate;
  std::string key;
};

Memory Wrap(const std::string& pem) {
  return Memory(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
}

Certificate ParseCertificate(const std::string& pem) {
  return Certificate(PEM_read_bio_X509(Wrap(pem).get(), nullptr, nullptr, nullptr), X509_free);
}

Key ParseKey(const std::string& pem) {
  // Without a callback OpenSSL would ask for a pass phrase on the terminal.
  const auto no_pass_phrase = [](char*, int, int, void*) { return -1; };
  return Key(PEM_read_bio_PrivateKey(Wrap(pem).get(), nullptr, no_pass_phrase, nullptr),
             EVP_PKEY_free);
}

absl::StatusOr<std::string> ReadPem(std::string_view what, const std::string& path) {
  if (path.empty()) {
    return absl::InvalidArgumentError("mutual TLS needs the file of the " + std::string(what) +
                                      ", and none is given; plain text must be asked for by name");
  }
  absl::StatusOr<std::string> pem = ReadFile(path);
  if (!pem.ok()) {
    return absl::Status(pem.status().code(),
                        std::string(what) + ": " + std::string(pem.status().message()));
  }
  return pem;
}

absl::Status NotPem(std::string_view what, const std::string& path) {
  return absl::InvalidArgumentError(std::string(what) + " " + path +
                                    " is not in PEM format, or is damaged");
}

// gRPC reports bad files only as a failed handshake, so they are checked here.
absl::StatusOr<PemFiles> ReadPemFiles(const TlsOptions& options) {
  constexpr std::string_view kCa = "certificate authority";
  constexpr std::string_view kCertificate = "certificate";
  constexpr std::string_view kKey = "private key";
  PemFiles files;
  HETERO_ASSIGN_OR_RETURN(files.ca, ReadPem(kCa, options.ca_file));
  HETERO_ASSIGN_OR_RETURN(files.certificate, ReadPem(kCertificate, options.certificate_file));
  HETERO_ASSIGN_OR_RETURN(files.key, ReadPem(kKey, options.key_file));
  if (!ParseCertificate(files.ca)) return NotPem(kCa, options.ca_file);
  const Certificate certificate = ParseCertificate(files.certificate);
  if (!certificate) return NotPem(kCertificate, options.certificate_file);
  const Key key = ParseKey(files.key);
  if (!key) return NotPem(kKey, options.key_file);
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return absl::InvalidArgumentError("private key " + options.key_file +
                                      " does not belong to certificate " +
                                      options.certificate_file);
  }
  return files;
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const TlsOptions& options) {
  if (options.plain_text) return grpc::InsecureChannelCredentials();
  HETERO_ASSIGN_OR_RETURN(PemFiles files, ReadPemFiles(options));
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = std::move(files.ca);
  ssl.pem_cert_chain = std::move(files.certificate);
  ssl.pem_private_key = std::move(files.key);
  return grpc::SslCredentials(ssl);
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const TlsOptions& options) {
  if (options.plain_text) return grpc::InsecureServerCredentials();
  HETERO_ASSIGN_OR_RETURN(PemFiles files, ReadPemFiles(options));
  grpc::SslServerCredentialsOptions ssl(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  ssl.pem_root_certs = std::move(files.ca);
  ssl.pem_key_cert_pairs.push_back({std::move(files.key), std::move(files.certificate)});
  return grpc::SslServerCredentials(ssl);
}

}  // namespace hetero::base
