#pragma once

#include <mutex>

#include "base/clock.h"

namespace hetero::reconcile {

// Spreads the status writes of all jobs that only carry progress: `per_second` of them, one
// second's worth at once. Safe from any thread.
class ProgressThrottle {
 public:
  explicit ProgressThrottle(double per_second);

  // Takes the next place and says how long it is until then; zero: now.
  base::Duration Reserve(base::Instant now);

 private:
  const base::Duration interval_;
  std::mutex mutex_;  // guards next_
  base::Instant next_{};
};

}  // namespace hetero::reconcile
