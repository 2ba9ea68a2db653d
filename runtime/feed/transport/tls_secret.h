#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "runtime/feed/transport/aes_gcm.h"

// The key schedule of TLS 1.3 (RFC 8446, section 7) from the traffic secrets on, for
// TLS_AES_128_GCM_SHA256.
namespace hetero::feed {

inline constexpr size_t kTlsSecretBytes = 32;

// Bytes that are overwritten when they are no longer needed.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string bytes) : bytes_(std::move(bytes)) {}
  ~Secret() { Forget(); }
  Secret(Secret&& other) noexcept : bytes_(other.bytes_) { other.Forget(); }
  Secret& operator=(Secret&& other) noexcept;

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }

 private:
  void Forget();
  std::string bytes_;
};

struct TrafficKeys {
  ~TrafficKeys();
  AesGcm::Key key{};
  AesGcm::Nonce iv{};
};

// Of a traffic secret of kTlsSecretBytes. False: the library failed.
bool GetTrafficKeys(const Secret& secret, TrafficKeys* keys);
// What follows it at a KeyUpdate; empty: the library failed.
Secret NextSecret(const Secret& secret);

// The nonce of the record of that number.
AesGcm::Nonce NonceOf(const AesGcm::Nonce& iv, uint64_t number);

}  // namespace hetero::feed
