#include "operator/plan/ttl.h"

#include "operator/plan/multikueue.h"

namespace hetero::plan {

void ExpireJob(Pass& pass) {
  if (IsCopyOfMultiKueue(pass)) return;  // its end might not have been copied back yet
  if (!pass.policy.ttl_seconds_after_finished || !pass.before.completion_time) return;
  const base::WallTime expiry =
      *pass.before.completion_time + std::chrono::seconds(*pass.policy.ttl_seconds_after_finished);
  pass.WakeAt(expiry);
  if (pass.now < expiry) return;
  pass.AddStage({DeleteJob{}});
}

}  // namespace hetero::plan
