#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hetero/v1/membership.pb.h"

namespace hetero::head {

// The loss over the steps of a job; fewer than kMaxPoints, spread evenly over the steps however
// they came: one by one, or already thinned where a head was away. The first and the newest point
// are always kept. A value type.
class LossCurve {
 public:
  static constexpr size_t kMaxPoints = 2000;

  // Points come in the order of their steps; one that is not newer than the last is a repetition
  // after a lost connection and is left out.
  void Add(const v1::LossPoint& point);
  const std::vector<v1::LossPoint>& points() const { return points_; }
  // Of all that were added, one was a number.
  bool any_finite() const { return any_finite_; }

 private:
  void Thin();

  std::vector<v1::LossPoint> points_;
  bool any_finite_ = false;
  int64_t spacing_ = 1;  // steps between two points, but for the newest
};

}  // namespace hetero::head
