#include "base/clock.h"

#include <time.h>

#include <algorithm>

#include "base/mutex.h"

namespace hetero::base {
namespace {

class RealClock : public Clock {
 public:
  Instant Now() const override { return std::chrono::steady_clock::now(); }
  WallTime WallNow() const override { return std::chrono::system_clock::now(); }

  bool SleepFor(Duration duration, std::stop_token stop) override {
    // Keeps now + duration representable.
    constexpr Duration kLongest = std::chrono::hours(24 * 3650);
    Mutex mutex;  // guards nothing: the condition variable only needs one
    CondVar wake;
    const MutexLock lock(mutex);
    wake.WaitUntil(mutex, Now() + std::min(duration, kLongest), stop, [] { return false; });
    return !stop.stop_requested();
  }
};

}  // namespace

Clock& Clock::Real() {
  static RealClock* const clock = new RealClock;
  return *clock;
}

Duration ThreadCpuTime() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

}  // namespace hetero::base
