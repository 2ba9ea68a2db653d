#pragma once

#include <string>

#include "absl/status/status.h"

// What mutual TLS needs, as PEM texts. Internal to base/tls.
namespace hetero::base {

struct PemTexts {
  std::string ca;
  std::string certificate;
  std::string key;
};

inline constexpr char kAuthority[] = "certificate authority";
inline constexpr char kCertificate[] = "certificate";
inline constexpr char kPrivateKey[] = "private key";

// kInvalidArgument when a text is not PEM or the key belongs to another certificate; `origins` say
// in the message where each text came from.
absl::Status CheckPem(const PemTexts& texts, const PemTexts& origins);

}  // namespace hetero::base
