#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/clock.h"

namespace hetero::controller {

// How long a failed key waits: the larger of its own exponential delay and an overall token bucket
// (client-go's default controller limiter, but for the longest delays: its 1000 s would leave a job
// idle for a quarter of an hour after an outage of seconds, and the bucket's debt has a floor, for
// it is everybody's: one failure must not wait minutes for thousands of others). Pure arithmetic
// over the times given; not thread-safe.
class RateLimiter {
 public:
  struct Options {
    base::Duration first = std::chrono::milliseconds(5);
    base::Duration max = std::chrono::seconds(30);
    double qps = 10;
    int burst = 100;
    base::Duration longest_debt = std::chrono::seconds(10);  // wait for a token
  };
  explicit RateLimiter(Options options) : options_(options) {}
  RateLimiter() : RateLimiter(Options{}) {}

  // Counts a failure of `key` and takes a token.
  base::Duration When(const std::string& key, base::Instant now);
  // After a success that asks for another pass at once: the key's own delay, so that it cannot
  // spin, and no token, which are for failures.
  base::Duration WhenAgain(const std::string& key) { return KeyDelay(key); }
  void Forget(const std::string& key);
  int Failures(const std::string& key) const;

 private:
  base::Duration KeyDelay(const std::string& key);
  base::Duration BucketDelay(base::Instant now);

  Options options_;
  std::map<std::string, int> failures_;
  std::optional<double> tokens_;  // negative: promised ahead of time; none: nothing taken yet
  base::Instant last_;            // when tokens_ was right
};

}  // namespace hetero::controller
