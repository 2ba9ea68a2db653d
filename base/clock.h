#pragma once

#include <chrono>
#include <stop_token>

namespace hetero::base {

using Duration = std::chrono::nanoseconds;
using Instant = std::chrono::steady_clock::time_point;   // monotonic; differences only
using WallTime = std::chrono::system_clock::time_point;  // for people and files

constexpr double ToSeconds(Duration d) { return std::chrono::duration<double>(d).count(); }
constexpr Duration FromSeconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}

// The only source of time. Safe from any thread. Tests use FakeClock (base/fake_clock.h).
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() const = 0;
  virtual WallTime WallNow() const = 0;
  // Returns true after `duration`, false as soon as `stop` is requested.
  virtual bool SleepFor(Duration duration, std::stop_token stop = {}) = 0;

  // The machine's clock; never destroyed.
  static Clock& Real();
};

// CPU time that the calling thread has taken. Reading it takes a fraction of a microsecond.
Duration ThreadCpuTime();

}  // namespace hetero::base
