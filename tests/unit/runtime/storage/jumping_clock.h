#pragma once

#include <vector>

#include "base/fake_clock.h"

namespace hetero::storage {

// A fake clock on which a sleep is over at once, for code of one thread.
class JumpingClock : public base::FakeClock {
 public:
  bool SleepFor(base::Duration duration, std::stop_token stop = {}) override {
    sleeps.push_back(duration);
    Advance(duration);
    return !stop.stop_requested();
  }
  std::vector<base::Duration> sleeps;
};

}  // namespace hetero::storage
