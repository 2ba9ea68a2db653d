#include "operator/kube/tls_context.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <utility>

#include "base/status_macros.h"
#include "operator/kube/system_authorities.h"

namespace hetero::kube {
namespace {

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Memory = std::unique_ptr<BIO, decltype(&BIO_free)>;

Memory Reader(const std::string& text) {
  return Memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
}

Certificate NextCertificate(BIO* in) {
  return Certificate(PEM_read_bio_X509(in, nullptr, nullptr, nullptr), X509_free);
}

absl::Status Unusable(const std::string& what) {
  const std::string reason = TlsErrorText(ERR_peek_last_error());
  ERR_clear_error();
  return absl::UnauthenticatedError(what + (reason.empty() ? "" : " (" + reason + ")"));
}

absl::Status Trust(SSL_CTX* context, const std::string& ca) {
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  const Memory in = Reader(ca);
  int count = 0;
  while (const Certificate certificate = NextCertificate(in.get())) {
    if (X509_STORE_add_cert(store, certificate.get()) != 1) {
      return Unusable("a certificate of the cluster's authority cannot be used");
    }
    ++count;
  }
  if (count == 0) return Unusable("the cluster's authority holds no PEM certificate");
  ERR_clear_error();  // the end of the text counts as an error there
  return absl::OkStatus();
}

absl::Status Show(SSL_CTX* context, const std::string& chain, const std::string& key_text) {
  const Memory in = Reader(chain);
  const Certificate leaf = NextCertificate(in.get());
  if (leaf == nullptr || SSL_CTX_use_certificate(context, leaf.get()) != 1) {
    return Unusable("the client certificate is no PEM certificate");
  }
  while (Certificate issuer = NextCertificate(in.get())) {
    if (SSL_CTX_add0_chain_cert(context, issuer.get()) != 1) {
      return Unusable("the client certificate's chain cannot be used");
    }
    (void)issuer.release();  // the context owns it now
  }
  ERR_clear_error();
  const Memory key_in = Reader(key_text);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(key_in.get(), nullptr, nullptr, const_cast<char*>("")),
      EVP_PKEY_free);
  if (key == nullptr) return Unusable("the client key is no PEM key without a passphrase");
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return Unusable("the client key does not fit the client certificate");
  }
  return absl::OkStatus();
}

// As Go's clients, and so kubectl, do: the subject's common name is not looked at.
absl::Status Expect(SSL_CTX* context, const std::string& name) {
  X509_VERIFY_PARAM* expected = SSL_CTX_get0_param(context);
  X509_VERIFY_PARAM_set_hostflags(
      expected, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const int set = IsAddress(name) ? X509_VERIFY_PARAM_set1_ip_asc(expected, name.c_str())
                                  : X509_VERIFY_PARAM_set1_host(expected, name.data(), name.size());
  return set == 1 ? absl::OkStatus() : Unusable("the server's name \"" + name + "\"");
}

int KeepVerdict(int verdict, X509_STORE_CTX*) { return verdict; }

// X509_verify_cert_error_string's words are for programmers there.
std::string RefusalText(int error) {
  switch (error) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "it is not made out to this host";
    default:
      return X509_verify_cert_error_string(error);
  }
}

}  // namespace

bool IsAddress(const std::string& host) {
  in6_addr address;
  return inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

absl::StatusOr<TlsSettings::Context> TlsSettings::MakeContext() {
  Context context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) {
    return Unusable("TLS 1.2 is not available");
  }
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  if (ca_.empty()) {
    TrustSystemAuthorities(context.get());
  } else {
    HETERO_RETURN_IF_ERROR(Trust(context.get(), ca_));
  }
  if (!certificate_.empty()) HETERO_RETURN_IF_ERROR(Show(context.get(), certificate_, key_));
  HETERO_RETURN_IF_ERROR(Expect(context.get(), server_name_));
  SSL_CTX_set_cert_verify_callback(context.get(), &TlsSettings::Verify, this);
  return context;
}

absl::StatusOr<SSL_CTX*> TlsSettings::SharedContext() {
  const base::MutexLock lock(mutex_);
  if (context_ == nullptr) {
    HETERO_ASSIGN_OR_RETURN(context_, MakeContext());
  }
  SSL_CTX_up_ref(context_.get());
  return context_.get();
}

int TlsSettings::Verify(X509_STORE_CTX* store, void* self) {
  // cpprestsdk's callback would compare the certificate with the Host header, port and all.
  X509_STORE_CTX_set_verify_cb(store, KeepVerdict);
  const int verified = X509_verify_cert(store);
  if (verified == 1) return 1;
  auto* settings = static_cast<TlsSettings*>(self);
  const int error = X509_STORE_CTX_get_error(store);
  ERR_clear_error();  // else the handshake's error is that of some signature's arithmetic
  const base::MutexLock lock(settings->mutex_);
  settings->last_refusal_ = RefusalText(error);
  return verified;
}

std::string TlsSettings::last_refusal() const {
  const base::MutexLock lock(mutex_);
  return last_refusal_;
}

std::string TlsErrorText(unsigned long error) {
  if (ERR_GET_LIB(error) == ERR_LIB_NONE) return "";
  const char* reason = ERR_reason_error_string(error);
  return reason == nullptr ? "" : reason;
}

bool IsCredentialAlert(unsigned long error) {
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) return false;
  switch (ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_HANDSHAKE_FAILURE:
    case SSL_AD_DECRYPT_ERROR:
    case SSL_AD_CERTIFICATE_REQUIRED:
      return true;
    default:
      return false;
  }
}

bool IsCertificateRefusal(unsigned long error) {
  return ERR_GET_LIB(error) == ERR_LIB_SSL &&
         ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED;
}

}  // namespace hetero::kube
