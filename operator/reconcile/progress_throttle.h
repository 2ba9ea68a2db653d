#pragma once

#include "base/clock.h"
#include "base/mutex.h"

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
  base::Mutex mutex_;
  base::Instant next_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace hetero::reconcile
