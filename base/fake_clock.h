#pragma once

#include <set>

#include "base/clock.h"
#include "base/mutex.h"

namespace hetero::base {

// A clock that moves only by Advance(), for tests. Sleepers wake when the time they wait for is
// reached or their stop is requested. Safe from any thread.
class FakeClock : public Clock {
 public:
  // Wall time starts at 2026-01-01 00:00:00 UTC.
  FakeClock();

  Instant Now() const override;
  WallTime WallNow() const override;
  bool SleepFor(Duration duration, std::stop_token stop = {}) override;

  // Moves time on and wakes every sleeper whose time has come.
  void Advance(Duration duration);
  // Moves time to the earliest moment a sleeper waits for; false, and no change, without sleepers.
  bool AdvanceToNextSleeper();
  // Threads inside SleepFor that are not due yet.
  int sleepers() const;
  // Blocks until at least `count` threads sleep, so that a test can advance without a race. False
  // when that takes more than `limit` of real time.
  bool WaitForSleepers(int count, Duration limit = std::chrono::seconds(10)) const;

 private:
  int SleepersLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  mutable CondVar changed_;
  Duration elapsed_ ABSL_GUARDED_BY(mutex_){0};
  // Of the sleepers, as time elapsed since the start.
  std::multiset<Duration> deadlines_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hetero::base
