#pragma once

#include "base/clock.h"
#include "runtime/train/progress/phases.h"

namespace hetero::train {

// Gives every moment since its construction that is not left out to exactly one phase, so that the
// phases sum to the whole.
class PhaseClock {
 public:
  explicit PhaseClock(base::Clock& clock) : clock_(clock), start_(clock.Now()), last_(start_) {}

  // The time since the last call belongs to `phase`.
  void Charge(double Phases::*phase) { ChargeUntil(phase, clock_.Now()); }
  // The same for the time up to `until`; nothing when that lies before the last call.
  void ChargeUntil(double Phases::*phase, base::Instant until) {
    if (until <= last_) return;
    phases_.*phase += base::ToSeconds(until - last_);
    last_ = until;
  }
  // The time since the last call belongs to none.
  void LeaveOut() {
    const base::Instant now = clock_.Now();
    start_ += now - last_;
    last_ = now;
  }

  const Phases& phases() const { return phases_; }
  // Up to the last call.
  double total_seconds() const { return base::ToSeconds(last_ - start_); }

 private:
  base::Clock& clock_;
  base::Instant start_;
  base::Instant last_;
  Phases phases_;
};

}  // namespace hetero::train
