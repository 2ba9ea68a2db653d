#pragma once

#include <cstdint>
#include <initializer_list>

namespace hetero::job {

inline constexpr uint64_t kGoldenRatio64 = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio, odd

// A bijection of 64-bit words that flips each output bit with probability 1/2 for any flipped input
// bit: variant 13 of Stafford, "Better bit mixing" (2011), the finaliser of SplitMix64.
constexpr uint64_t Mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Hash of a few words under a key, for choosing samples; not for resisting an adversary. Words that
// differ in exactly one position never collide.
constexpr uint64_t HashWords(uint64_t key, std::initializer_list<uint64_t> words) {
  uint64_t hash = Mix64(key + kGoldenRatio64);
  for (uint64_t word : words) hash = Mix64((hash ^ word) + kGoldenRatio64);
  return hash;
}

}  // namespace hetero::job
