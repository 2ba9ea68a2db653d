#pragma once

#include <cstdint>
#include <optional>

#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "hetero/v1/status.pb.h"

namespace hetero::local {

// runPolicy.activeDeadlineSeconds and stallTimeoutSeconds of a local job, with the meaning that the
// operator gives them: since the job began, and since the last step while the head says that
// training runs. A training that goes on from a checkpoint makes steps for the second time: each is
// one more than the head's word before told of. A silent head proves no stall. Pure; not
// thread-safe.
class RunLimits {
 public:
  RunLimits(const api::RunPolicy& policy, base::Instant began);

  bool DeadlineOver(base::Instant now) const;
  // At every word of the head. True once: then the count begins anew.
  bool Stalled(const v1::JobStatus& status, base::Instant now);
  // A new attempt: the head's next word is the first.
  void BeginAttempt() { last_step_.reset(); }

  std::optional<int64_t> active_deadline() const { return active_deadline_; }
  std::optional<int32_t> stall_timeout() const { return stall_timeout_; }

 private:
  const std::optional<int64_t> active_deadline_;  // seconds
  const std::optional<int32_t> stall_timeout_;
  const base::Instant began_;
  struct Step {
    int64_t number = 0;
    base::Instant time;
  };
  std::optional<Step> last_step_;  // none: training does not run
};

}  // namespace hetero::local
