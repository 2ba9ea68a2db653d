#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hetero::job {

// Fingerprint of a stream of consumed samples: the 128-bit sum of a keyed hash of (epoch, step,
// global slot, sample id, CRC32C of the produced sample). Order and place of production do not
// change it; a wrong, missing or repeated sample does. The hash is SipHash-2-4 with 128-bit output
// (sip_hash.h) of the five numbers as 64-bit little-endian words. A value type.
class StreamDigest {
 public:
  StreamDigest() = default;
  StreamDigest(uint64_t high, uint64_t low) : high_(high), low_(low) {}

  // Adds one sample. `seed` keys the hash, so equal streams under different seeds differ.
  void Add(uint64_t seed, int64_t epoch, int64_t step, int64_t slot, int64_t sample_id,
           uint32_t crc32c);
  StreamDigest& operator+=(const StreamDigest& other);
  bool operator==(const StreamDigest&) const = default;

  uint64_t high() const { return high_; }
  uint64_t low() const { return low_; }
  std::string ToHex() const;  // 32 lower-case digits

 private:
  uint64_t high_ = 0;
  uint64_t low_ = 0;
};

}  // namespace hetero::job
