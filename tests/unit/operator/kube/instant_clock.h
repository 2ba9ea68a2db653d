#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "base/clock.h"

namespace hetero::kube {

// A clock for loops that run on the test's own thread: whoever sleeps moves time on by as much.
class InstantClock : public base::Clock {
 public:
  base::Instant Now() const override { return base::Instant(base::Duration(elapsed_)); }
  base::WallTime WallNow() const override {
    return std::chrono::sys_days(std::chrono::year(2026) / 1 / 1) +
           std::chrono::duration_cast<base::WallTime::duration>(base::Duration(elapsed_));
  }
  bool SleepFor(base::Duration duration, std::stop_token stop) override {
    if (stop.stop_requested()) return false;
    elapsed_ += duration.count();
    std::lock_guard lock(mutex_);
    sleeps_.push_back(duration);
    return true;
  }

  void Advance(base::Duration duration) { elapsed_ += duration.count(); }
  // How long each sleep was, in order.
  std::vector<base::Duration> sleeps() const {
    std::lock_guard lock(mutex_);
    return sleeps_;
  }

 private:
  std::atomic<int64_t> elapsed_ = std::chrono::nanoseconds(std::chrono::hours(1)).count();
  mutable std::mutex mutex_;  // guards sleeps_
  std::vector<base::Duration> sleeps_;
};

}  // namespace hetero::kube
