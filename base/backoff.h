#pragma once

#include <functional>

#include "base/clock.h"

namespace hetero::base {

// Waiting times between attempts: initial, initial x multiplier, ... up to max, each shortened by a
// random part so that many clients do not come back at once. It only computes; the caller
// sleeps on its Clock. Not thread-safe.
class Backoff {
 public:
  struct Options {
    Duration initial = std::chrono::milliseconds(100);  // > 0
    Duration max = std::chrono::seconds(10);
    double multiplier = 2;  // >= 1
    double jitter = 0.2;    // 0..1: a wait lies in ((1 - jitter) x wait, wait]
  };
  // Gives numbers in [0, 1).
  using Random = std::function<double()>;

  explicit Backoff(const Options& options, Random random = SystemRandom());

  // How long to wait before the next attempt; longer with each call.
  Duration Next();
  // After a success: the next wait is the initial one again.
  void Reset();
  // Calls of Next() since the start or the last Reset().
  int attempts() const { return attempts_; }

  // Numbers of a generator of its own, seeded by the system.
  static Random SystemRandom();

 private:
  Options options_;
  Random random_;
  Duration wait_;
  int attempts_ = 0;
};

}  // namespace hetero::base
