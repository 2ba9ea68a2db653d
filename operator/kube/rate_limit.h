#pragma once

#include <algorithm>

#include "base/clock.h"
#include "base/mutex.h"

namespace hetero::kube {

// A token bucket: `burst` calls at once, `qps` in the long run; a `qps` of 0 or less: no limit.
// Safe from any thread.
class RateLimit {
 public:
  RateLimit(base::Clock& clock, double qps, int burst)
      : clock_(clock), qps_(qps), burst_(std::max(burst, 1)), tokens_(burst_), at_(clock.Now()) {}

  // Takes a token, a future one if need be, and says how long to wait for it.
  base::Duration Reserve() {
    if (qps_ <= 0) return base::Duration::zero();
    const base::MutexLock lock(mutex_);
    const base::Instant now = clock_.Now();
    tokens_ = std::min(burst_, tokens_ + base::ToSeconds(now - at_) * qps_) - 1;
    at_ = now;
    return tokens_ >= 0 ? base::Duration::zero() : base::FromSeconds(-tokens_ / qps_);
  }
  // Gives back a token that was not used.
  void Return() {
    const base::MutexLock lock(mutex_);
    tokens_ += 1;
  }

 private:
  base::Clock& clock_;
  const double qps_;
  const double burst_;
  base::Mutex mutex_;
  double tokens_ ABSL_GUARDED_BY(mutex_);  // below zero: promised to those who wait
  base::Instant at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hetero::kube
