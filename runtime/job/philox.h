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
  int32_t view = 0;
};

// Random numbers of one operator on one view of one sample: a function of (seed, epoch, sample id,
// operator position, view) and of how many were drawn before, never of worker, thread or arrival.
// Not thread-safe; make one where it is used.
//
// The counter, from its low word on: blocks drawn, the id's bits 0 to 31, the rest of it with the
// view and the position, the epoch. In that third word the id has bits 0 to 15 where there is view
// 0 alone, and with more views bits 0 to 5, the view bits 6 to 15, the position bits 16 to 31.
class RandomStream {
 public:
  static constexpr int64_t kMostIdsWithViews = int64_t{1} << 38;
  // `position` counts operators with repeats unrolled; < 2^16. `view` < 2^10. Streams are distinct
  // for epochs below 2^32 and sample ids below 2^48, those of a job whose samples have other views
  // than 0 below kMostIdsWithViews; each has 2^34 numbers.
  RandomStream(uint64_t seed, int64_t epoch, int64_t sample_id, int32_t position, int32_t view = 0);

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
