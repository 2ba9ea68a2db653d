#pragma once

#include <cstddef>
#include <vector>

#include "runtime/insight/report.h"
#include "runtime/insight/thinned_series.h"

namespace hetero::insight {

// How one rank spent its time, from the totals it tells now and then; fewer than kMaxPoints. A
// value type.
class TimeLine {
 public:
  static constexpr size_t kMaxPoints = 120;

  // One that is not newer than the last is left out.
  void Add(const TimePoint& point) {
    if (points().empty() || point.seconds > points().back().seconds) series_.Add(point);
  }
  const std::vector<TimePoint>& points() const { return series_.points(); }

 private:
  ThinnedSeries<TimePoint, kMaxPoints> series_;
};

}  // namespace hetero::insight
