#pragma once

#include <cstdint>

namespace hetero::source {

// Stafford's variant 13 of MurmurHash3's finaliser, as in SplitMix64.
constexpr uint64_t Mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// lowbias32 (Wellons, "Prospecting for hash functions", 2018): two multiplications, so a loop over
// consecutive counters vectorises.
constexpr uint32_t Mix32(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

// Key of one picture: the same for the same (seed, split, id), unrelated for any other.
constexpr uint64_t PictureKey(uint64_t seed, uint64_t split, int64_t id) {
  return Mix64(Mix64(Mix64(seed + 0x9e3779b97f4a7c15u) + split) + static_cast<uint64_t>(id));
}

// Numbers drawn for one picture (SplitMix64). Good enough to draw and to add noise; what augments
// samples is job::RandomStream. Not thread-safe; make one where it is used.
class CounterRandom {
 public:
  explicit CounterRandom(uint64_t key) : state_(key) {}

  uint64_t Next() { return Mix64(state_ += 0x9e3779b97f4a7c15u); }
  // Uniform in [min, max).
  double Uniform(double min, double max) {
    return min + (max - min) * static_cast<double>(Next() >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_;
};

}  // namespace hetero::source
