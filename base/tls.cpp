#include "base/tls.h"

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <string_view>

#include "base/atomic_file.h"
#include "base/pem.h"
#include "base/status_macros.h"

namespace hetero::base {
namespace {

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

// gRPC reports bad files only as a failed handshake, so they are checked here.
absl::StatusOr<PemTexts> ReadPemFiles(const TlsOptions& options) {
  PemTexts texts;
  HETERO_ASSIGN_OR_RETURN(texts.ca, ReadPem(kAuthority, options.ca_file));
  HETERO_ASSIGN_OR_RETURN(texts.certificate, ReadPem(kCertificate, options.certificate_file));
  HETERO_ASSIGN_OR_RETURN(texts.key, ReadPem(kPrivateKey, options.key_file));
  HETERO_RETURN_IF_ERROR(
      CheckPem(texts, {options.ca_file, options.certificate_file, options.key_file}));
  return texts;
}

PeerTls PeerOf(const PemTexts& files, const TlsOptions& options) {
  return {.ca_pem = files.ca,
          .certificate_pem = files.certificate,
          .key_pem = files.key,
          .allowed_uris = options.peer_uris};
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const TlsOptions& options) {
  if (options.plain_text) return grpc::InsecureChannelCredentials();
  HETERO_ASSIGN_OR_RETURN(PemTexts files, ReadPemFiles(options));
  if (!options.peer_uris.empty()) return MakePeerChannelCredentials(PeerOf(files, options));
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = std::move(files.ca);
  ssl.pem_cert_chain = std::move(files.certificate);
  ssl.pem_private_key = std::move(files.key);
  return grpc::SslCredentials(ssl);
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const TlsOptions& options) {
  if (options.plain_text) return grpc::InsecureServerCredentials();
  HETERO_ASSIGN_OR_RETURN(PemTexts files, ReadPemFiles(options));
  if (!options.peer_uris.empty()) return MakePeerServerCredentials(PeerOf(files, options));
  grpc::SslServerCredentialsOptions ssl(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  ssl.pem_root_certs = std::move(files.ca);
  ssl.pem_key_cert_pairs.push_back({std::move(files.key), std::move(files.certificate)});
  return grpc::SslServerCredentials(ssl);
}

}  // namespace hetero::base
