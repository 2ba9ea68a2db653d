#include "operator/plan/suspend.h"

#include "api/reasons.h"
#include "api/spec_hash.h"
#include "operator/plan/clean_up.h"
#include "operator/plan/conditions.h"
#include "operator/plan/gang.h"
#include "operator/plan/pod_deletion.h"
#include "operator/plan/queue.h"
#include "operator/plan/start_up.h"
#include "operator/plan/stop_first.h"

namespace hetero::plan {
namespace {

using api::ConditionStatus;
using api::ConditionType;

constexpr char kWhySuspended[] = "the job is suspended";

bool MayBeDeleted(Pass& pass) {
  const api::Condition* suspended = pass.before.Find(ConditionType::kSuspended);
  return suspended == nullptr || HasStopped(pass, suspended->last_transition_time, kWhySuspended);
}

// The time of this transition is when the stop began, though the condition was not True before
// either: the grace counts from it.
void BeginStop(Pass& pass, const char* reason, const char* message) {
  SetCondition(pass, ConditionType::kSuspended, ConditionStatus::kFalse, reason, message);
  if (!WasSuspended(pass)) RestampCondition(pass, ConditionType::kSuspended);
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
    LeaveQueue(pass);
    DeletePodGroups(pass);  // a scheduler keeps room for what one asks for
  } else {
    BeginStop(pass, api::reason::kSuspending,
              "the training is stopped with a checkpoint, then the pods are deleted");
  }
  DescribeHalt(pass, api::reason::kSuspended);
  if (!WasSuspended(pass)) {
    AskHeadToStop(pass, kWhySuspended);
  } else if (MayBeDeleted(pass)) {
    DeleteAllPods(pass);
  }
}

// All objects go, not the pods alone: their names, selectors, rules and certificates are those of
// the spec, and of the operator, of then. Not while a checkpoint is being written: the order to
// stop cannot be taken back.
void Resume(Pass& pass) {
  pass.paused = true;
  if (pass.PodsLeft() && !MayBeDeleted(pass)) return;
  if (pass.spec_refused) {
    if (pass.PodsLeft()) return DeleteAllPods(pass);
    SetCondition(pass, ConditionType::kSuspended, ConditionStatus::kTrue, api::reason::kSuspended,
                 "not resumed: the condition SpecIgnored says what is wrong with the spec");
    return;
  }
  if (pass.PodsLeft() || ObjectsLeft(pass)) {
    DeleteAllPods(pass);
    DeleteObjects(pass);
    return;
  }
  SetCondition(pass, ConditionType::kSuspended, ConditionStatus::kFalse, api::reason::kResumed);
  if (IsQueued(pass)) return EnterQueue(pass);
  pass.paused = false;
  BeginAgain(pass);
  pass.AddEvent(false, api::event::kResumed, "Resume", "A new attempt begins");
}

// The API server lets the spec change while suspend is set. When that came and went unseen, the
// pods are those of another spec.
bool ChangedUnseen(const Pass& pass) {
  return pass.before.attempt > 0 && !pass.spec_refused &&
         api::IsComparableSpecHash(pass.before.spec_hash) &&
         pass.object.generation != pass.before.observed_generation &&
         api::SpecHash(pass.spec) != pass.before.spec_hash;
}

// From here on as if the suspension had been seen.
void BeginAnew(Pass& pass) {
  constexpr char kWhy[] =
      "the spec was changed while the job was suspended, which no pass saw: its pods are replaced";
  pass.paused = true;
  BeginStop(pass, api::reason::kSpecChanged, kWhy);
  for (const ConditionType type :
       {ConditionType::kRunning, ConditionType::kRegistered, ConditionType::kPodsCreated}) {
    SetCondition(pass, type, ConditionStatus::kFalse, api::reason::kSuspended);
  }
  pass.AddEvent(false, api::event::kRestarting, "Restart", kWhy);
  AskHeadToStop(pass, kWhySuspended);
}

// The attempt was begun by an operator that kept no hash, or another one.
void RememberSpec(Pass& pass) {
  if (pass.before.attempt == 0 || pass.spec_refused) return;
  if (api::IsComparableSpecHash(pass.before.spec_hash)) return;
  pass.status.spec_hash = api::SpecHash(pass.spec);
}

}  // namespace

// Pods are being deleted, or gone, because of a suspension, seen or not.
bool WasSuspended(const Pass& pass) {
  const api::Condition* suspended = pass.before.Find(ConditionType::kSuspended);
  return suspended != nullptr && (suspended->status == ConditionStatus::kTrue ||
                                  suspended->reason == api::reason::kSuspending ||
                                  suspended->reason == api::reason::kSpecChanged);
}

void SuspendOrResume(Pass& pass) {
  if (pass.policy.suspend) {
    Suspend(pass);
  } else if (WasSuspended(pass)) {
    Resume(pass);
  } else if (ChangedUnseen(pass)) {
    BeginAnew(pass);
  } else {
    RememberSpec(pass);
  }
}

}  // namespace hetero::plan
