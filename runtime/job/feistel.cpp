#include "runtime/job/feistel.h"

#include <bit>

#include "runtime/job/mix.h"

namespace hetero::job {
namespace {

// Four rounds of an ideal round function are indistinguishable from random (Luby and Rackoff,
// 1988); the second four make up for halves of very few bits.
constexpr int kRounds = 8;

uint64_t Encrypt(uint64_t key, int half_bits, uint64_t value) {
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  uint64_t left = value >> half_bits;
  uint64_t right = value & mask;
  for (uint64_t round = 1; round <= kRounds; ++round) {
    // Halves have at most 31 bits, so (round, right) is one distinct counter of SplitMix64.
    // The high bits are the best mixed ones.
    const uint64_t mixed = Mix64(key + kGoldenRatio64 * ((round << 32) | right));
    const uint64_t next = left ^ ((mixed >> 32) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits) | right;
}

}  // namespace

uint64_t FeistelPermute(uint64_t key, uint64_t size, uint64_t index) {
  const int half_bits = (std::bit_width(size - 1) + 1) / 2;
  if (half_bits == 0) return 0;
  uint64_t value = index;
  do {
    value = Encrypt(key, half_bits, value);
  } while (value >= size);
  return value;
}

}  // namespace hetero::job
