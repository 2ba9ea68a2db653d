#include "runtime/insight/time_line.h"

namespace hetero::insight {

void TimeLine::Add(const TimePoint& point) {
  if (!points_.empty() && point.seconds <= points_.back().seconds) return;
  // The newest point always ends the line; it gives way to the next one unless its turn has come.
  if (points_.size() <= 1 || since_last_kept_ >= stride_) {
    points_.push_back(point);
    since_last_kept_ = 1;
  } else {
    points_.back() = point;
    ++since_last_kept_;
  }
  if (points_.size() < kMaxPoints) return;
  std::vector<TimePoint> kept;
  for (size_t i = 0; i + 1 < points_.size(); i += 2) kept.push_back(points_[i]);
  kept.push_back(points_.back());
  points_ = std::move(kept);
  stride_ *= 2;
}

}  // namespace hetero::insight
