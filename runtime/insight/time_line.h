#pragma once

#include <cstdint>
#include <vector>

#include "runtime/insight/report.h"

namespace hetero::insight {

// How one rank spent its time, from the totals it tells now and then; thinned evenly so that it
// never holds more than kMaxPoints. The first and the last are kept. A value type.
class TimeLine {
 public:
  static constexpr size_t kMaxPoints = 120;

  // One that is not newer than the last is left out.
  void Add(const TimePoint& point);
  const std::vector<TimePoint>& points() const { return points_; }

 private:
  std::vector<TimePoint> points_;
  int64_t stride_ = 1;  // of the points offered, every stride_-th stays
  int64_t since_last_kept_ = 0;
};

}  // namespace hetero::insight
