#pragma once

#include <cstddef>
#include <vector>

#include "hetero/v1/membership.pb.h"

namespace hetero::head {

// The loss over the steps of a job, thinned evenly so that it never holds more than kMaxPoints. The
// first and the last point are always kept. A value type.
class LossCurve {
 public:
  static constexpr size_t kMaxPoints = 2000;

  // Points come in the order of their steps; one that is not newer than the last is a repetition
  // after a lost connection and is left out.
  void Add(const v1::LossPoint& point);

  const std::vector<v1::LossPoint>& points() const { return points_; }

 private:
  std::vector<v1::LossPoint> points_;
  int64_t last_step_ = -1;
  int64_t stride_ = 1;  // of the points offered, every stride_-th stays
  int64_t since_last_kept_ = 0;
};

}  // namespace hetero::head
