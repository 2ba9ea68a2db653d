#include "base/fake_clock.h"

#include <iterator>

namespace hetero::base {
namespace {

// Not zero, so that code which mistakes a default Instant for "never" is found out.
constexpr Duration kStart = std::chrono::hours(1);
constexpr auto kWallStart = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);

}  // namespace

FakeClock::FakeClock() = default;

Instant FakeClock::Now() const {
  const MutexLock lock(mutex_);
  return Instant(kStart + elapsed_);
}

WallTime FakeClock::WallNow() const {
  const MutexLock lock(mutex_);
  return kWallStart + std::chrono::duration_cast<WallTime::duration>(elapsed_);
}

bool FakeClock::SleepFor(Duration duration, std::stop_token stop) {
  const MutexLock lock(mutex_);
  const Duration deadline =
      duration > Duration::max() - elapsed_ ? Duration::max() : elapsed_ + duration;
  const auto place = deadlines_.insert(deadline);
  changed_.NotifyAll();
  changed_.Wait(mutex_, stop,
                [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return elapsed_ >= deadline; });
  deadlines_.erase(place);
  changed_.NotifyAll();
  return !stop.stop_requested();
}

void FakeClock::Advance(Duration duration) {
  const MutexLock lock(mutex_);
  elapsed_ += duration;
  changed_.NotifyAll();
}

bool FakeClock::AdvanceToNextSleeper() {
  const MutexLock lock(mutex_);
  const auto next = deadlines_.upper_bound(elapsed_);
  if (next == deadlines_.end()) return false;
  elapsed_ = *next;
  changed_.NotifyAll();
  return true;
}

int FakeClock::sleepers() const {
  const MutexLock lock(mutex_);
  return SleepersLocked();
}

bool FakeClock::WaitForSleepers(int count, Duration limit) const {
  const MutexLock lock(mutex_);
  return changed_.WaitUntil(
      mutex_, Clock::Real().Now() + limit, {},
      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return SleepersLocked() >= count; });
}

int FakeClock::SleepersLocked() const {
  return static_cast<int>(std::distance(deadlines_.upper_bound(elapsed_), deadlines_.end()));
}

}  // namespace hetero::base
