#include "operator/reconcile/progress_throttle.h"

#include <algorithm>

namespace hetero::reconcile {

namespace {

constexpr base::Duration kBurst = std::chrono::seconds(1);

}  // namespace

ProgressThrottle::ProgressThrottle(double per_second)
    : interval_(base::FromSeconds(1 / std::max(per_second, 1e-3))) {}

base::Duration ProgressThrottle::Reserve(base::Instant now) {
  const base::MutexLock lock(mutex_);
  const base::Instant place = std::max(next_, now - kBurst + interval_);
  next_ = place + interval_;
  return std::max(base::Duration::zero(), base::Duration(place - now));
}

}  // namespace hetero::reconcile
