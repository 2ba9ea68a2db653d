#include "operator/plan/history.h"

#include "api/reasons.h"
#include "operator/plan/conditions.h"

namespace hetero::plan {

void CopyHistory(Pass& pass) {
  const HeadReport* report = pass.Report();
  if (report != nullptr && !report->history.empty()) pass.status.history = report->history;
}

std::string AttemptCause(const Pass& pass) {
  const api::Condition& restarting = ConditionOf(pass, api::ConditionType::kRestarting);
  if (restarting.status == api::ConditionStatus::kTrue) return restarting.message;
  const api::Condition& suspended = ConditionOf(pass, api::ConditionType::kSuspended);
  return suspended.reason == api::reason::kResumed ? "resumed after a suspension" : "";
}

}  // namespace hetero::plan
