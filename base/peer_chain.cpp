#include "base/peer_chain.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <memory>
#include <vector>

namespace hetero::base {
namespace {

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

std::vector<Certificate> Parse(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> memory(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  std::vector<Certificate> certificates;
  while (X509* next = PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(next, X509_free);
  }
  return certificates;
}

std::string Words(int error) {
  switch (error) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return "its certificate is signed by another authority";
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "its certificate has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "its certificate is not valid yet; compare the clocks of the nodes";
    default:
      return std::string("its certificate does not hold: ") + X509_verify_cert_error_string(error);
  }
}

}  // namespace

absl::Status CheckClientChain(const std::string& leaf_pem, const std::string& chain_pem,
                              const std::string& ca_pem) {
  const std::vector<Certificate> leaf = Parse(leaf_pem);
  if (leaf.empty()) return absl::UnauthenticatedError("it shows no certificate");
  const std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> store(X509_STORE_new(),
                                                                      X509_STORE_free);
  for (const Certificate& authority : Parse(ca_pem)) {
    X509_STORE_add_cert(store.get(), authority.get());
  }
  const std::vector<Certificate> chain = Parse(chain_pem);
  const std::unique_ptr<STACK_OF(X509), void (*)(STACK_OF(X509)*)> untrusted(
      sk_X509_new_null(), [](STACK_OF(X509) * stack) { sk_X509_free(stack); });
  for (const Certificate& certificate : chain) sk_X509_push(untrusted.get(), certificate.get());
  const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> context(
      X509_STORE_CTX_new(), X509_STORE_CTX_free);
  if (X509_STORE_CTX_init(context.get(), store.get(), leaf.front().get(), untrusted.get()) != 1 ||
      X509_STORE_CTX_set_default(context.get(), "ssl_client") != 1) {
    return absl::UnauthenticatedError("its certificate could not be checked");
  }
  if (X509_verify_cert(context.get()) == 1) return absl::OkStatus();
  return absl::UnauthenticatedError(Words(X509_STORE_CTX_get_error(context.get())));
}

}  // namespace hetero::base
