#include "base/clock.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace hetero::base {
namespace {

class RealClock : public Clock {
 public:
  Instant Now() const override { return std::chrono::steady_clock::now(); }
  WallTime WallNow() const override { return std::chrono::system_clock::now(); }

  bool SleepFor(Duration duration, std::stop_token stop) override {
    // Keeps now + duration representable.
    constexpr Duration kLongest = std::chrono::hours(24 * 3650);
    std::mutex mutex;  // guards nothing: the condition variable only needs one
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    wake.wait_for(lock, stop, std::min(duration, kLongest), [] { return false; });
    return !stop.stop_requested();
  }
};

}  // namespace

Clock& Clock::Real() {
  static RealClock* const clock = new RealClock;
  return *clock;
}

}  // namespace hetero::base
