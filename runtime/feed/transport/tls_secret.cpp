#include "runtime/feed/transport/tls_secret.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <memory>
#include <string_view>

namespace hetero::feed {
namespace {

// HKDF-Expand-Label(secret, label, "", size).
bool Expand(const std::string& secret, std::string_view label, uint8_t* out, size_t size) {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf(
      EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_TLS1_3_KDF, nullptr), EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(
      EVP_KDF_CTX_new(kdf.get()), EVP_KDF_CTX_free);
  if (context == nullptr) return false;
  int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
  std::string digest = "SHA256", prefix = "tls13 ", name(label), key(secret);
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key.data(), key.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, prefix.data(), prefix.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, name.data(), name.size()),
      OSSL_PARAM_construct_end()};
  const bool done = EVP_KDF_derive(context.get(), out, size, parameters) == 1;
  OPENSSL_cleanse(key.data(), key.size());
  return done;
}

}  // namespace

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this == &other) return *this;
  Forget();
  bytes_ = other.bytes_;
  other.Forget();
  return *this;
}

void Secret::Forget() {
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
  bytes_.clear();
}

TrafficKeys::~TrafficKeys() {
  OPENSSL_cleanse(key.data(), key.size());
  OPENSSL_cleanse(iv.data(), iv.size());
}

bool GetTrafficKeys(const Secret& secret, TrafficKeys* keys) {
  return secret.size() == kTlsSecretBytes &&
         Expand(secret.bytes(), "key", keys->key.data(), keys->key.size()) &&
         Expand(secret.bytes(), "iv", keys->iv.data(), keys->iv.size());
}

Secret NextSecret(const Secret& secret) {
  std::string next(kTlsSecretBytes, '\0');
  const bool done =
      Expand(secret.bytes(), "traffic upd", reinterpret_cast<uint8_t*>(next.data()), next.size());
  return done ? Secret(std::move(next)) : Secret();
}

AesGcm::Nonce NonceOf(const AesGcm::Nonce& iv, uint64_t number) {
  AesGcm::Nonce nonce = iv;
  for (size_t i = 0; i < sizeof number; ++i) {
    nonce[nonce.size() - 1 - i] ^= static_cast<uint8_t>(number >> (8 * i));
  }
  return nonce;
}

}  // namespace hetero::feed
