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
  if (suspended.reason == api::reason::kResumed) return "resumed after a suspension";
  const api::Condition& queued = ConditionOf(pass, api::ConditionType::kQueued);
  const bool admitted_again = pass.status.attempt > 1 && queued.reason == api::reason::kAdmitted &&
                              queued.last_transition_time == pass.status.start_time;
  return admitted_again ? "admitted again by its queue, which had taken its quota back" : "";
}

}  // namespace hetero::plan
