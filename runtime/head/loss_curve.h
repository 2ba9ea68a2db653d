#pragma once

#include <cstddef>
#include <vector>

#include "hetero/v1/membership.pb.h"
#include "runtime/insight/thinned_series.h"

namespace hetero::head {

// The loss over the steps of a job; fewer than kMaxPoints. A value type.
class LossCurve {
 public:
  static constexpr size_t kMaxPoints = 2000;

  // Points come in the order of their steps; one that is not newer than the last is a repetition
  // after a lost connection and is left out.
  void Add(const v1::LossPoint& point) {
    if (points().empty() || point.step() > points().back().step()) series_.Add(point);
  }
  const std::vector<v1::LossPoint>& points() const { return series_.points(); }

 private:
  insight::ThinnedSeries<v1::LossPoint, kMaxPoints> series_;
};

}  // namespace hetero::head
