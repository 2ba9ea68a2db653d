#include "tests/unit/base/test_certificates.h"

#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

namespace hetero::base {
namespace {

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Key NewKey() { return Key(EVP_EC_gen("P-256"), EVP_PKEY_free); }

template <typename WritePem>
std::string ToPem(WritePem write) {
  std::unique_ptr<BIO, decltype(&BIO_free)> memory(BIO_new(BIO_s_mem()), BIO_free);
  EXPECT_EQ(write(memory.get()), 1);
  char* data;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string ToPem(X509* certificate) {
  return ToPem([=](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

void AddExtension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
  ASSERT_NE(extension, nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Valid since an hour ago; not yet signed. `issuer` null: its own.
Certificate Draft(const std::string& common_name, EVP_PKEY* key, X509* issuer, long serial,
                  long valid_seconds) {
  Certificate certificate(X509_new(), X509_free);
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), valid_seconds);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(certificate.get(),
                       X509_get_subject_name(issuer != nullptr ? issuer : certificate.get()));
  return certificate;
}

}  // namespace

struct TestAuthority::Impl {
  Key key{nullptr, EVP_PKEY_free};
  Certificate certificate{nullptr, X509_free};
  long next_serial = 2;
};

TestAuthority::TestAuthority() : impl_(new Impl) {
  impl_->key = NewKey();
  impl_->certificate = Draft("test authority", impl_->key.get(), nullptr, 1, 3600);
  X509* certificate = impl_->certificate.get();
  AddExtension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE");
  // All test authorities have one name: this tells them apart where several are trusted.
  AddExtension(certificate, certificate, NID_subject_key_identifier, "hash");
  X509_sign(certificate, impl_->key.get(), EVP_sha256());
}

TestAuthority::~TestAuthority() { delete impl_; }

std::string TestAuthority::certificate_pem() const { return ToPem(impl_->certificate.get()); }

TestAuthority::Leaf TestAuthority::Issue(const std::string& common_name) const {
  return Sign(common_name, "DNS:localhost,IP:127.0.0.1");
}

TestAuthority::Leaf TestAuthority::IssueForUri(const std::string& uri) const {
  return Sign("peer", "URI:" + uri);
}

TestAuthority::Leaf TestAuthority::IssueExpiredForUri(const std::string& uri) const {
  return Sign("peer", "URI:" + uri, -60);
}

TestAuthority::Leaf TestAuthority::Sign(const std::string& common_name,
                                        const std::string& alternative_names,
                                        long valid_seconds) const {
  const Key key = NewKey();
  const Certificate certificate =
      Draft(common_name, key.get(), impl_->certificate.get(), impl_->next_serial++, valid_seconds);
  AddExtension(certificate.get(), impl_->certificate.get(), NID_subject_alt_name,
               alternative_names.c_str());
  AddExtension(certificate.get(), impl_->certificate.get(), NID_authority_key_identifier, "keyid");
  X509_sign(certificate.get(), impl_->key.get(), EVP_sha256());
  return {ToPem(certificate.get()), ToPem([&](BIO* out) {
            return PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace hetero::base
