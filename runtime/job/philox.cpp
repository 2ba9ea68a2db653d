#include "runtime/job/philox.h"

#include <cmath>

namespace hetero::job {
namespace {

// Multipliers and Weyl increments of the paper, table 2.
constexpr uint32_t kMultiplier0 = 0xD2511F53;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;
constexpr uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

RandomStream::RandomStream(uint64_t seed, int64_t epoch, int64_t sample_id, int32_t position,
                           int32_t view)
    : origin_{seed, epoch, sample_id, position, view},
      counter_{0, static_cast<uint32_t>(sample_id),
               (static_cast<uint32_t>(sample_id >> 32) & 0xFFFF) |
                   ((static_cast<uint32_t>(view) & 0x3FF) << 6) |
                   (static_cast<uint32_t>(position) << 16),
               static_cast<uint32_t>(epoch)},
      key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)} {}

uint32_t RandomStream::NextUint32() {
  if (used_ == 4) {
    block_ = Philox4x32(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[used_++];
}

float RandomStream::NextFloat() { return static_cast<float>(NextUint32() >> 8) * 0x1p-24f; }

double RandomStream::NextDouble() {
  const uint64_t high = NextUint32() >> 5;
  const uint64_t low = NextUint32() >> 6;
  return static_cast<double>((high << 26) | low) * 0x1p-53;
}

double RandomStream::Uniform(double min, double max) {
  const double value = min + (max - min) * NextDouble();
  // The sum may round up to max, which is outside.
  return value < max || min == max ? value : std::nextafter(max, min);
}

// Lemire, "Fast random integer generation in an interval" (2019).
uint32_t RandomStream::Below(uint32_t bound) {
  uint64_t product = uint64_t{NextUint32()} * bound;
  if (static_cast<uint32_t>(product) < bound) {
    const uint32_t threshold = -bound % bound;
    while (static_cast<uint32_t>(product) < threshold) product = uint64_t{NextUint32()} * bound;
  }
  return static_cast<uint32_t>(product >> 32);
}

}  // namespace hetero::job
