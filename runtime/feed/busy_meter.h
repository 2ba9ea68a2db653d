#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/mutex.h"

namespace hetero::feed {

// How long at least one ticket has been there to work on: samples over busy seconds is what a
// worker can do, also while it is asked for less. Thread-safe.
class BusyMeter {
 public:
  explicit BusyMeter(base::Clock& clock) : clock_(clock) {}

  void OnAccepted() {
    const base::MutexLock lock(mutex_);
    if (tickets_++ == 0) since_ = clock_.Now();
  }
  // Done, failed or dropped: exactly once for each accepted ticket.
  void OnDone() {
    const base::MutexLock lock(mutex_);
    if (--tickets_ == 0) busy_ += clock_.Now() - since_;
  }
  double seconds() const {
    const base::MutexLock lock(mutex_);
    return base::ToSeconds(tickets_ > 0 ? busy_ + (clock_.Now() - since_) : busy_);
  }

 private:
  base::Clock& clock_;
  mutable base::Mutex mutex_;
  int64_t tickets_ ABSL_GUARDED_BY(mutex_) = 0;
  base::Instant since_ ABSL_GUARDED_BY(mutex_){};
  base::Duration busy_ ABSL_GUARDED_BY(mutex_){0};
};

}  // namespace hetero::feed
