#include "runtime/head/loss_curve.h"

#include <cmath>
#include <utility>

namespace hetero::head {

void LossCurve::Add(const v1::LossPoint& point) {
  if (!points_.empty() && point.step() <= points_.back().step()) return;
  any_finite_ = any_finite_ || std::isfinite(point.loss());
  // The newest ends the curve; it gives way to the next one unless it stands far enough from the
  // one before.
  const size_t count = points_.size();
  if (count > 1 && points_[count - 1].step() - points_[count - 2].step() < spacing_) {
    points_.back() = point;
  } else {
    points_.push_back(point);
  }
  while (points_.size() >= kMaxPoints) Thin();
}

void LossCurve::Thin() {
  spacing_ *= 2;
  size_t kept = 1;
  for (size_t i = 1; i < points_.size(); ++i) {
    const bool newest = i + 1 == points_.size();
    if (!newest && points_[i].step() - points_[kept - 1].step() < spacing_) continue;
    if (kept != i) points_[kept] = std::move(points_[i]);
    ++kept;
  }
  points_.resize(kept);
}

}  // namespace hetero::head
