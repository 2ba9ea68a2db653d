#include "runtime/feed/service_times.h"

#include <algorithm>

namespace hetero::feed {

void ServiceTimes::Add(base::Duration time) {
  if (latest_.size() < kKept) {
    latest_.push_back(time);
  } else {
    latest_[next_] = time;
    next_ = (next_ + 1) % kKept;
  }
  std::vector<base::Duration> sorted = latest_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  median_ = *middle;
}

}  // namespace hetero::feed
