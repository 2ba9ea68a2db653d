#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/feed/transport/aes_gcm.h"

// The key schedule of TLS 1.3 (RFC 8446, section 7) from the traffic secrets on, for
// TLS_AES_128_GCM_SHA256.
namespace hetero::feed {

inline constexpr size_t kTlsSecretBytes = 32;

struct TrafficKeys {
  AesGcm::Key key{};
  AesGcm::Nonce iv{};
};

// Of a traffic secret of kTlsSecretBytes. Nothing: the library failed.
std::optional<TrafficKeys> TrafficKeysOf(const std::string& secret);
// What follows it at a KeyUpdate; empty: the library failed.
std::string NextSecret(const std::string& secret);

// The nonce of the record of that number.
AesGcm::Nonce NonceOf(const AesGcm::Nonce& iv, uint64_t number);

}  // namespace hetero::feed
