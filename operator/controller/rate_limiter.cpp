#include "operator/controller/rate_limiter.h"

#include <algorithm>
#include <cmath>

namespace hetero::controller {

base::Duration RateLimiter::When(const std::string& key, base::Instant now) {
  return std::max(KeyDelay(key), BucketDelay(now));
}

void RateLimiter::Forget(const std::string& key) { failures_.erase(key); }

int RateLimiter::Failures(const std::string& key) const {
  const auto it = failures_.find(key);
  return it == failures_.end() ? 0 : it->second;
}

base::Duration RateLimiter::KeyDelay(const std::string& key) {
  const int failures_before = failures_[key]++;
  const double nanoseconds =
      std::ldexp(static_cast<double>(options_.first.count()), failures_before);
  if (nanoseconds >= static_cast<double>(options_.max.count())) return options_.max;
  return base::Duration(std::llround(nanoseconds));
}

// As golang.org/x/time/rate reserves: a token that is not there yet is promised, and the bucket
// goes below zero, but not without end.
base::Duration RateLimiter::BucketDelay(base::Instant now) {
  const double full = options_.burst;
  const double filled =
      tokens_ ? *tokens_ + std::max(0.0, base::ToSeconds(now - last_)) * options_.qps : full;
  const double least = -base::ToSeconds(options_.longest_debt) * options_.qps;
  tokens_ = std::max(std::min(full, filled) - 1, least);
  last_ = now;
  return *tokens_ < 0 ? base::FromSeconds(-*tokens_ / options_.qps) : base::Duration::zero();
}

}  // namespace hetero::controller
