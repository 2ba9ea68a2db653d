#include "operator/plan/suspend.h"

#include "api/reasons.h"
#include "operator/plan/clean_up.h"
#include "operator/plan/conditions.h"
#include "operator/plan/pod_deletion.h"
#include "operator/plan/stop_first.h"

namespace hetero::plan {
namespace {

using api::ConditionStatus;
using api::ConditionType;

// Whether the status as read says that pods are being deleted, or gone, because of a suspension.
bool WasSuspended(const Pass& pass) {
  const api::Condition* suspended = pass.before.Find(ConditionType::kSuspended);
  return suspended != nullptr && (suspended->status == ConditionStatus::kTrue ||
                                  suspended->reason == api::reason::kSuspending);
}

void Suspend(Pass& pass) {
  pass.paused = true;
  const bool gone = !pass.PodsLeft();
  if (gone && !WasTrue(pass, ConditionType::kSuspended)) {
    pass.AddEvent(false, api::event::kSuspended, "Suspend", "No pod is left");
  }
  if (gone) {
    SetCondition(pass, ConditionType::kSuspended, ConditionStatus::kTrue, api::reason::kSuspended);
    pass.status.uncounted.clear();
  } else {
    SetCondition(pass, ConditionType::kSuspended, ConditionStatus::kFalse, api::reason::kSuspending,
                 "the training is stopped with a checkpoint, then the pods are deleted");
  }
  for (const ConditionType type :
       {ConditionType::kRunning, ConditionType::kRegistered, ConditionType::kPodsCreated}) {
    SetCondition(pass, type, ConditionStatus::kFalse, api::reason::kSuspended);
  }
  for (const ConditionType type : {ConditionType::kRestarting, ConditionType::kStalled}) {
    if (ConditionOf(pass, type).status != ConditionStatus::kTrue) continue;
    SetCondition(pass, type, ConditionStatus::kFalse, api::reason::kSuspended);
  }
  if (!WasSuspended(pass)) {
    AskHeadToStop(pass);
  } else if (HasStopped(pass)) {
    DeleteAllPods(pass);
  }
}

void Resume(Pass& pass) {
  if (pass.PodsLeft() || pass.seen.config_map != nullptr) {
    pass.paused = true;
    DeleteAllPods(pass);
    DeleteConfig(pass);
    return;
  }
  pass.OpenAttempt(pass.status.attempt + 1);
  pass.status.start_time = pass.today;
  pass.status.head_address.clear();
  pass.status.uncounted.clear();
  SetCondition(pass, ConditionType::kSuspended, ConditionStatus::kFalse, api::reason::kResumed);
  SetCondition(pass, ConditionType::kPodsCreated, ConditionStatus::kUnknown,
               api::reason::kCreatingPods);
  SetCondition(pass, ConditionType::kRegistered, ConditionStatus::kUnknown,
               api::reason::kCreatingPods);
  SetCondition(pass, ConditionType::kRunning, ConditionStatus::kUnknown, api::reason::kNotStarted);
  pass.AddEvent(false, api::event::kResumed, "Resume", "A new attempt begins");
}

}  // namespace

void SuspendOrResume(Pass& pass) {
  if (pass.policy.suspend) {
    Suspend(pass);
  } else if (WasSuspended(pass)) {
    Resume(pass);
  }
}

}  // namespace hetero::plan
