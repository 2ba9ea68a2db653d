#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

// AES-128-GCM of a message that is given in pieces (NIST SP 800-38D).
namespace hetero::feed {

class AesGcm {
 public:
  static constexpr size_t kKeyBytes = 16, kNonceBytes = 12, kTagBytes = 16;
  using Key = std::array<uint8_t, kKeyBytes>;
  using Nonce = std::array<uint8_t, kNonceBytes>;
  using Tag = std::array<uint8_t, kTagBytes>;
  enum class Direction { kSeal, kOpen };

  // By intel-ipsec-mb where the program was built with it and the processor has AES, which knows
  // wider instructions than OpenSSL 3.0 (decision 0086); else by OpenSSL. Null when that does not
  // work either.
  static std::unique_ptr<AesGcm> Create(const Key& key, Direction direction);
  static std::unique_ptr<AesGcm> CreateOfOpenSsl(const Key& key, Direction direction);
  virtual ~AesGcm() = default;

  // A message. A nonce must not be used twice with one key.
  virtual void Begin(const Nonce& nonce, const uint8_t* associated, size_t size) = 0;
  // `in` and `out` may be the same.
  virtual void Update(const uint8_t* in, uint8_t* out, size_t size) = 0;
  // Its end. False: the library failed.
  virtual bool Seal(Tag* tag) = 0;
  // False: what was opened since Begin() is not what was sealed, and nobody may use it.
  virtual bool Open(const Tag& tag) = 0;
};

}  // namespace hetero::feed
