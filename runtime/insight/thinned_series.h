#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hetero::insight {

// Points in the order in which they come, thinned evenly so that there are always fewer than
// `limit`, and at least about half as many once there were that many. The first and the newest
// point are always kept. A value type.
template <typename Point, size_t limit>
class ThinnedSeries {
 public:
  void Add(const Point& point) {
    // The newest point always ends the series; it gives way to the next one unless its turn has
    // come.
    const bool last_stays = points_.size() <= 1 || since_last_kept_ >= stride_;
    if (last_stays) {
      points_.push_back(point);
      since_last_kept_ = 1;
    } else {
      points_.back() = point;
      ++since_last_kept_;
    }
    if (points_.size() >= limit) Thin();
  }

  const std::vector<Point>& points() const { return points_; }

 private:
  void Thin() {
    std::vector<Point> kept;
    kept.reserve(limit);
    for (size_t i = 0; i + 1 < points_.size(); i += 2) kept.push_back(std::move(points_[i]));
    kept.push_back(std::move(points_.back()));
    points_ = std::move(kept);
    stride_ *= 2;
  }

  std::vector<Point> points_;
  int64_t stride_ = 1;  // of the points offered, every stride_-th stays
  int64_t since_last_kept_ = 0;
};

}  // namespace hetero::insight
