#pragma once

#include <array>
#include <cstdint>

namespace hetero::job {

// One block of Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// What the random numbers of one operator on one sample are a function of.
struct StreamKey {
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t sample_id = 0;
  int32_t position = 0;  // of the operator in the pipeline, repeats unrolled
};

// Random numbers of one operator on one sample: a function of (seed, epoch, sample id, operator
// position) and of how many were drawn before, never of worker, thread or arrival. Not thread-safe;
// make one where it is used.
class RandomStream {
 public:
  // `position` counts operators with repeats unrolled; < 2^16. Streams are distinct for sample ids
  // below 2^48 and epochs below 2^32; each has 2^34 numbers.
  RandomStream(uint64_t seed, int64_t epoch, int64_t sample_id, int32_t position);

  // For who draws numbers in another way.
  const StreamKey& key() const { return origin_; }

  uint32_t NextUint32();
  // Uniform in [0, 1) with 24 random bits (float) or 53 (double).
  float NextFloat();
  double NextDouble();
  // Uniform in [min, max); min when they are equal.
  double Uniform(double min, double max);
  // Uniform in [0, bound), bound > 0, without modulo bias.
  uint32_t Below(uint32_t bound);

 private:
  StreamKey origin_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace hetero::job
