#pragma once

#include <cstddef>
#include <vector>

#include "runtime/insight/thinned_series.h"

namespace hetero::head {

// How fast a job was, as rank 0 told.
struct RateSample {
  double seconds = 0;  // since the job was created
  double samples_per_second = 0;
  double wait_percent = 0;  // of the rank that waited most, so far
};

// Over the time of this head; fewer than kMaxPoints. A value type.
class RateCurve {
 public:
  static constexpr size_t kMaxPoints = 600;

  // One that is not a tenth of a second newer than the last is left out.
  void Add(const RateSample& sample) {
    if (points().empty() || sample.seconds > points().back().seconds + 0.1) series_.Add(sample);
  }
  const std::vector<RateSample>& points() const { return series_.points(); }

 private:
  insight::ThinnedSeries<RateSample, kMaxPoints> series_;
};

}  // namespace hetero::head
