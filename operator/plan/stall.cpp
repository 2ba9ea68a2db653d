#include "operator/plan/stall.h"

#include "api/reasons.h"
#include "api/run_limits.h"
#include "operator/plan/conditions.h"
#include "operator/plan/restart.h"

namespace hetero::plan {

void CheckStall(Pass& pass) {
  const HeadReport* report = pass.Report();
  if (!pass.policy.stall_timeout_seconds || report == nullptr || !report->connected ||
      report->state != HeadReport::State::kRunning) {
    return;
  }
  const std::chrono::seconds limit(*pass.policy.stall_timeout_seconds);
  const base::WallTime deadline = report->last_step_time + limit;
  pass.WakeAt(deadline);
  if (pass.now < deadline) return;
  const std::string message = api::DescribeStall(limit.count());
  SetCondition(pass, api::ConditionType::kStalled, api::ConditionStatus::kTrue,
               api::reason::kNoStep, message);
  pass.AddEvent(true, api::event::kStalled, "Restart", message);
  RestartGang(pass, 1, api::reason::kStalled, message);
}

}  // namespace hetero::plan
