#include "operator/reconcile/certificates.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "api/role_type.h"
#include "base/status_macros.h"

namespace hetero::reconcile {
namespace {

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Memory = std::unique_ptr<BIO, decltype(&BIO_free)>;

constexpr std::chrono::hours kBackdated{1};             // the nodes' clocks may run behind
constexpr std::chrono::hours kOperatorValid{365 * 24};  // renewed in time
// A job's authority cannot sign again, and heads take the operator's for as long as they run.
constexpr std::chrono::hours kLongValid{10 * 365 * 24};
constexpr int kSerialBits = 127;  // positive and at most 20 octets, RFC 5280 section 4.1.2.2

absl::Status OpenSslError(const char* what) {
  char reason[256] = "";
  ERR_error_string_n(ERR_get_error(), reason, sizeof(reason));
  ERR_clear_error();
  return absl::InternalError(absl::StrCat("certificates: ", what, ": ", reason));
}

absl::StatusOr<Key> NewKey() {
  Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  if (!key) return OpenSslError("generating a P-256 key");
  return key;
}

template <typename WritePem>
absl::StatusOr<std::string> ToPem(WritePem write) {
  const Memory memory(BIO_new(BIO_s_secmem()), BIO_free);
  if (!memory || write(memory.get()) != 1) return OpenSslError("writing PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

Memory Reader(const std::string& pem) {
  return Memory(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
}

absl::StatusOr<std::string> CertificatePem(X509* certificate) {
  return ToPem([=](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

absl::StatusOr<std::string> KeyPem(EVP_PKEY* key) {
  return ToPem([=](BIO* out) {
    return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

bool SetRandomSerial(X509* certificate) {
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> serial(BN_new(), BN_free);
  return serial && BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool SetValidity(X509* certificate, base::WallTime now, std::chrono::hours valid) {
  const time_t from = std::chrono::system_clock::to_time_t(now - kBackdated);
  const time_t to = std::chrono::system_clock::to_time_t(now - kBackdated + valid);
  return ASN1_TIME_set(X509_getm_notBefore(certificate), from) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), to) != nullptr;
}

bool SetCommonName(X509* certificate, const std::string& name) {
  // At most 64 characters, RFC 5280 appendix A; peers are told apart by their URI, not by this.
  const std::string text = name.substr(0, 64);
  return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()), -1, 0) == 1;
}

bool AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()), X509_EXTENSION_free);
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// Everything but issuer, extensions and signature.
absl::StatusOr<Certificate> Draft(const std::string& name, EVP_PKEY* key, base::WallTime now,
                                  std::chrono::hours valid) {
  Certificate certificate(X509_new(), X509_free);
  if (!certificate || X509_set_version(certificate.get(), X509_VERSION_3) != 1 ||
      !SetRandomSerial(certificate.get()) || !SetValidity(certificate.get(), now, valid) ||
      X509_set_pubkey(certificate.get(), key) != 1 || !SetCommonName(certificate.get(), name)) {
    return OpenSslError("filling a certificate");
  }
  return certificate;
}

// Signs leaves; its key is gone with it, unless key_pem() is kept.
class Authority {
 public:
  static absl::StatusOr<Authority> Create(const std::string& name, base::WallTime now,
                                          std::chrono::hours valid) {
    HETERO_ASSIGN_OR_RETURN(Key key, NewKey());
    HETERO_ASSIGN_OR_RETURN(Certificate certificate, Draft(name, key.get(), now, valid));
    X509* own = certificate.get();
    if (X509_set_issuer_name(own, X509_get_subject_name(own)) != 1 ||
        !AddExtension(own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
        !AddExtension(own, own, NID_key_usage, "critical,keyCertSign") ||
        !AddExtension(own, own, NID_subject_key_identifier, "hash") ||
        X509_sign(own, key.get(), EVP_sha256()) <= 0) {
      return OpenSslError("signing an authority");
    }
    return Authority(std::move(key), std::move(certificate), now);
  }

  static absl::StatusOr<Authority> FromPem(const std::string& certificate_pem,
                                           const std::string& key_pem, base::WallTime now) {
    const Memory certificate_in = Reader(certificate_pem);
    const Memory key_in = Reader(key_pem);
    Certificate certificate(PEM_read_bio_X509(certificate_in.get(), nullptr, nullptr, nullptr),
                            X509_free);
    Key key(PEM_read_bio_PrivateKey(key_in.get(), nullptr, nullptr, const_cast<char*>("")),
            EVP_PKEY_free);
    const bool usable = certificate && key && X509_check_ca(certificate.get()) == 1 &&
                        X509_check_private_key(certificate.get(), key.get()) == 1;
    ERR_clear_error();
    if (!usable) {
      return absl::InvalidArgumentError(
          "certificates: not an authority's certificate with the key that belongs to it");
    }
    return Authority(std::move(key), std::move(certificate), now);
  }

  bool Outlives(base::WallTime time) const {
    time_t end = std::chrono::system_clock::to_time_t(time);
    return X509_cmp_time(X509_get0_notAfter(certificate_.get()), &end) > 0;
  }

  absl::StatusOr<std::string> pem() const { return CertificatePem(certificate_.get()); }
  absl::StatusOr<std::string> key_pem() const { return KeyPem(key_.get()); }

  absl::StatusOr<children::Leaf> Issue(const std::string& name, const std::string& uri,
                                       std::chrono::hours valid) const {
    HETERO_ASSIGN_OR_RETURN(const Key key, NewKey());
    HETERO_ASSIGN_OR_RETURN(const Certificate certificate, Draft(name, key.get(), now_, valid));
    X509* leaf = certificate.get();
    X509* issuer = certificate_.get();
    if (X509_set_issuer_name(leaf, X509_get_subject_name(issuer)) != 1 ||
        !AddExtension(leaf, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
        !AddExtension(leaf, issuer, NID_key_usage, "critical,digitalSignature") ||
        !AddExtension(leaf, issuer, NID_ext_key_usage, "serverAuth,clientAuth") ||
        !AddExtension(leaf, issuer, NID_subject_key_identifier, "hash") ||
        !AddExtension(leaf, issuer, NID_authority_key_identifier, "keyid:always") ||
        !AddExtension(leaf, issuer, NID_subject_alt_name, absl::StrCat("URI:", uri)) ||
        X509_sign(leaf, key_.get(), EVP_sha256()) <= 0) {
      return OpenSslError("signing a leaf");
    }
    children::Leaf issued;
    HETERO_ASSIGN_OR_RETURN(issued.certificate_pem, CertificatePem(leaf));
    HETERO_ASSIGN_OR_RETURN(issued.key_pem, KeyPem(key.get()));
    return issued;
  }

 private:
  Authority(Key key, Certificate certificate, base::WallTime now)
      : key_(std::move(key)), certificate_(std::move(certificate)), now_(now) {}

  Key key_;
  Certificate certificate_;
  base::WallTime now_;
};

// The uid goes into OpenSSL's extension syntax, where commas and line ends have a meaning.
absl::Status CheckUid(const std::string& uid) {
  if (uid.empty()) return absl::InvalidArgumentError("certificates: the job has no uid");
  for (const char c : uid) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '_' || c == '.';
    if (plain) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("certificates: the job's uid \"", uid,
                     "\" may hold letters, digits, dots, dashes and underscores only"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JobTrust> IssueJobTrust(const std::string& job_uid, base::WallTime now) {
  HETERO_RETURN_IF_ERROR(CheckUid(job_uid));
  HETERO_ASSIGN_OR_RETURN(const Authority authority,
                          Authority::Create(absl::StrCat("hetero job ", job_uid), now, kLongValid));
  JobTrust trust;
  HETERO_ASSIGN_OR_RETURN(trust.ca_pem, authority.pem());
  for (const auto& [role_type, leaf] : {std::pair{api::kHeadType, &trust.head},
                                        {api::kCpuWorkerType, &trust.cpu_worker},
                                        {api::kGpuWorkerType, &trust.gpu_worker}}) {
    HETERO_ASSIGN_OR_RETURN(*leaf,
                            authority.Issue(role_type, RoleUri(job_uid, role_type), kLongValid));
  }
  return trust;
}

namespace {

constexpr char kOperatorName[] = "hetero operator";

absl::StatusOr<OperatorIdentity> IdentityOf(const Authority& authority, base::WallTime now) {
  OperatorIdentity identity;
  HETERO_ASSIGN_OR_RETURN(identity.ca_pem, authority.pem());
  HETERO_ASSIGN_OR_RETURN(identity.ca_key_pem, authority.key_pem());
  HETERO_ASSIGN_OR_RETURN(identity.leaf,
                          authority.Issue(kOperatorName, kOperatorUri, kOperatorValid));
  identity.expires = now - kBackdated + kOperatorValid;
  return identity;
}

}  // namespace

absl::StatusOr<OperatorIdentity> IssueOperatorIdentity(base::WallTime now) {
  HETERO_ASSIGN_OR_RETURN(const Authority authority,
                          Authority::Create(kOperatorName, now, kLongValid));
  return IdentityOf(authority, now);
}

absl::StatusOr<OperatorIdentity> RenewOperatorIdentity(const OperatorIdentity& old,
                                                       base::WallTime now) {
  HETERO_ASSIGN_OR_RETURN(const Authority authority,
                          Authority::FromPem(old.ca_pem, old.ca_key_pem, now));
  if (!authority.Outlives(now + kOperatorValid)) return IssueOperatorIdentity(now);
  return IdentityOf(authority, now);
}

}  // namespace hetero::reconcile
