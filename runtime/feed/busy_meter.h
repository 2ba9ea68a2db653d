#pragma once

#include <mutex>

#include "base/clock.h"

namespace hetero::feed {

// How long at least one ticket has been there to work on: samples over busy seconds is what a
// worker can do, also while it is asked for less. Thread-safe.
class BusyMeter {
 public:
  explicit BusyMeter(base::Clock& clock) : clock_(clock) {}

  void OnAccepted() {
    const std::lock_guard lock(mutex_);
    if (tickets_++ == 0) since_ = clock_.Now();
  }
  // Done, failed or dropped: exactly once for each accepted ticket.
  void OnDone() {
    const std::lock_guard lock(mutex_);
    if (--tickets_ == 0) busy_ += clock_.Now() - since_;
  }
  double seconds() const {
    const std::lock_guard lock(mutex_);
    return base::ToSeconds(tickets_ > 0 ? busy_ + (clock_.Now() - since_) : busy_);
  }

 private:
  base::Clock& clock_;
  mutable std::mutex mutex_;  // guards all below
  int64_t tickets_ = 0;
  base::Instant since_{};
  base::Duration busy_{0};
};

}  // namespace hetero::feed
