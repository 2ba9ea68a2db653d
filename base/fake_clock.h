#pragma once

#include <condition_variable>
#include <mutex>
#include <set>

#include "base/clock.h"

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
  int SleepersLocked() const;

  mutable std::mutex mutex_;  // guards elapsed_ and deadlines_
  mutable std::condition_variable_any changed_;
  Duration elapsed_{0};
  std::multiset<Duration> deadlines_;  // of the sleepers, as time elapsed since the start
};

}  // namespace hetero::base
