#pragma once

#include <cstdint>
#include <span>

namespace hetero::job {

struct Hash128 {
  uint64_t low = 0;   // the first 8 output bytes, little-endian
  uint64_t high = 0;  // the last 8
  bool operator==(const Hash128&) const = default;
};

// SipHash-2-4 with 128-bit output (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012)
// of `words` laid out as little-endian bytes, under the key (key_low, key_high). Pure.
Hash128 SipHash128(uint64_t key_low, uint64_t key_high, std::span<const uint64_t> words);

}  // namespace hetero::job
