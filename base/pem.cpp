#include "base/pem.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

namespace hetero::base {
namespace {

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Memory = std::unique_ptr<BIO, decltype(&BIO_free)>;

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

absl::Status NotPem(const std::string& what, const std::string& origin) {
  return absl::InvalidArgumentError(what + " " + origin + " is not in PEM format, or is damaged");
}

}  // namespace

absl::Status CheckPem(const PemTexts& texts, const PemTexts& origins) {
  if (!ParseCertificate(texts.ca)) return NotPem(kAuthority, origins.ca);
  const Certificate certificate = ParseCertificate(texts.certificate);
  if (!certificate) return NotPem(kCertificate, origins.certificate);
  const Key key = ParseKey(texts.key);
  if (!key) return NotPem(kPrivateKey, origins.key);
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return absl::InvalidArgumentError(std::string(kPrivateKey) + " " + origins.key +
                                      " does not belong to certificate " + origins.certificate);
  }
  return absl::OkStatus();
}

}  // namespace hetero::base
