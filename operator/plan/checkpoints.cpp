#include "operator/plan/checkpoints.h"

#include "api/reasons.h"
#include "operator/plan/conditions.h"

namespace hetero::plan {

using api::ConditionStatus;
using api::ConditionType;

void DescribeCheckpoints(Pass& pass) {
  const HeadReport* report = pass.Report();
  if (report == nullptr || !report->connected) return;
  const std::string& problem = report->checkpoint_problem;
  const bool failing =
      ConditionOf(pass, ConditionType::kCheckpointFailing).status == ConditionStatus::kTrue;
  if (!problem.empty()) {
    if (!failing) pass.AddEvent(true, api::event::kCheckpointFailed, "Checkpoint", problem);
    SetCondition(pass, ConditionType::kCheckpointFailing, ConditionStatus::kTrue,
                 api::reason::kWriteFailed, problem);
  } else if (failing) {
    pass.AddEvent(false, api::event::kCheckpointWritten, "Checkpoint",
                  "Checkpoints can be written again");
    SetCondition(pass, ConditionType::kCheckpointFailing, ConditionStatus::kFalse,
                 api::reason::kRecovered);
  }
}

}  // namespace hetero::plan
