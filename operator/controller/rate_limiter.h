#pragma once

#include <map>
#include <string>

#include "base/clock.h"

namespace hetero::controller {

// How long a failed key waits: the larger of its own exponential delay and an overall token bucket
// (client-go's default controller limiter). Pure arithmetic over the times given; not thread-safe.
class RateLimiter {
 public:
  struct Options {
    base::Duration first = std::chrono::milliseconds(5);
    base::Duration max = std::chrono::seconds(1000);
    double qps = 10;
    int burst = 100;
  };
  explicit RateLimiter(Options options) : options_(options) {}
  RateLimiter() : RateLimiter(Options{}) {}

  base::Duration When(const std::string& key, base::Instant now);
  void Forget(const std::string& key);
  int Failures(const std::string& key) const;

 private:
  Options options_;
  std::map<std::string, int> failures_;
  double tokens_ = -1;  // -1: full
  base::Instant last_;
};

}  // namespace hetero::controller
