#include "operator/plan/deadline.h"

#include <algorithm>
#include <limits>

#include "api/reasons.h"
#include "api/run_limits.h"
#include "operator/plan/ending.h"

namespace hetero::plan {

void CheckActiveDeadline(Pass& pass) {
  if (!pass.policy.active_deadline_seconds || !pass.status.start_time) return;
  // More than fits into a time of day never comes.
  const std::chrono::seconds limit(
      std::min<int64_t>(*pass.policy.active_deadline_seconds, std::numeric_limits<int32_t>::max()));
  const base::WallTime deadline = *pass.status.start_time + limit;
  pass.WakeAt(deadline);
  if (pass.now < deadline) return;
  FailJob(pass, api::reason::kDeadlineExceeded, api::DescribeActiveDeadline(limit.count()));
}

}  // namespace hetero::plan
