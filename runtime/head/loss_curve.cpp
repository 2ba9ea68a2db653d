#include "runtime/head/loss_curve.h"

#include <utility>

namespace hetero::head {

void LossCurve::Add(const v1::LossPoint& point) {
  if (point.step() <= last_step_) return;
  last_step_ = point.step();
  // The newest point always ends the curve; it gives way to the next one unless its turn has come.
  const bool last_stays = points_.size() <= 1 || since_last_kept_ >= stride_;
  if (last_stays) {
    points_.push_back(point);
    since_last_kept_ = 1;
  } else {
    points_.back() = point;
    ++since_last_kept_;
  }
  if (points_.size() < kMaxPoints) return;

  std::vector<v1::LossPoint> kept;
  kept.reserve(kMaxPoints);
  for (size_t i = 0; i + 1 < points_.size(); i += 2) kept.push_back(std::move(points_[i]));
  kept.push_back(std::move(points_.back()));
  points_ = std::move(kept);
  stride_ *= 2;
}

}  // namespace hetero::head
