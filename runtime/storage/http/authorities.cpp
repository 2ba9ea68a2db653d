#include "runtime/storage/http/authorities.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "absl/strings/str_cat.h"

namespace hetero::storage {

void Authorities::Free::operator()(x509_store_st* store) const { X509_STORE_free(store); }

Authorities::Authorities(const std::string& file) : store_(X509_STORE_new()) {
  if (store_ != nullptr && X509_STORE_load_file(store_.get(), file.c_str()) == 1) return;
  ERR_clear_error();
  status_ = absl::UnauthenticatedError(
      absl::StrCat("cannot read the certificate authorities in ", file,
                   "; install ca-certificates, or name another file (AWS_CA_BUNDLE)"));
}

void Authorities::TrustedBy(void* ssl_context) const {
  X509_STORE_up_ref(store_.get());
  SSL_CTX_set_cert_store(static_cast<SSL_CTX*>(ssl_context), store_.get());
}

}  // namespace hetero::storage
