#include "operator/plan/queue.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/labels.h"
#include "api/reasons.h"
#include "operator/plan/clean_up.h"
#include "operator/plan/conditions.h"
#include "operator/plan/elastic.h"
#include "operator/plan/pod_deletion.h"
#include "operator/plan/start_up.h"
#include "operator/plan/stop_first.h"
#include "operator/plan/workload.h"
#include "operator/plan/workload_status.h"

namespace hetero::plan {
namespace {

using api::ConditionStatus;
using api::ConditionType;
using WorkloadPtr = std::shared_ptr<const ObservedWorkload>;
using Support = ObservedQueues::Support;
using namespace workload_condition;

constexpr char kWhyEvicted[] = "its queue takes the job's quota back";

// A Workload that is gone may have gone with Kueue itself, of which the operator then hears soon.
constexpr base::Duration kMissedFor = std::chrono::seconds(10);
constexpr size_t kLongestVerdict = 1024;  // bytes; Kueue's conditions take 32 KiB

// The status as read says that nothing is to run before an admission.
bool WasWaiting(const Pass& pass) {
  const api::Condition* queued = pass.before.Find(ConditionType::kQueued);
  return queued != nullptr &&
         (queued->status == ConditionStatus::kTrue || queued->reason == api::reason::kKueueMissing);
}

std::string OpenChecks(const ObservedWorkload& gang) {
  std::vector<std::string> open;
  for (const AdmissionCheck& check : gang.checks) {
    if (check.state == "Ready") continue;
    open.push_back(absl::StrCat("admission check ", check.name, " (", check.state, ")",
                                check.message.empty() ? "" : ": ", check.message));
  }
  return absl::StrJoin(open, "; ");
}

// What an admission waits for, in Kueue's words where it has said any.
std::string Hindrance(const ObservedWorkload& gang) {
  if (gang.Is(kQuotaReserved)) {
    const std::string checks = OpenChecks(gang);
    return absl::StrCat("quota is reserved", checks.empty() ? "" : "; waiting for ", checks);
  }
  const std::string message = MessageOf(gang, kQuotaReserved);
  return message.empty() ? absl::StrCat("Workload ", gang.name, " waits in queue ", gang.queue)
                         : message;
}

void Wait(Pass& pass, const char* reason, const std::string& message) {
  SetCondition(pass, ConditionType::kQueued, ConditionStatus::kTrue, reason, message);
}

void DescribeWait(Pass& pass, const ObservedWorkload& gang) {
  if (!gang.active) return Wait(pass, api::reason::kDeactivated, LossOf(&gang));
  const std::string hindrance = Hindrance(gang);
  if (gang.Is(kEvicted)) {
    const std::string loss = LossOf(&gang);
    const bool same = gang.holds_quota || hindrance == loss;
    return Wait(pass, api::reason::kEvicted, same ? loss : absl::StrCat(loss, "; ", hindrance));
  }
  const WorkloadCondition* reserved = gang.Find(kQuotaReserved);
  const bool inadmissible = reserved != nullptr && reserved->status == "False" &&
                            reserved->reason == api::reason::kInadmissible;
  Wait(pass, inadmissible ? api::reason::kInadmissible : api::reason::kPending, hindrance);
}

// The training was stopped because its quota was taken back: pods first, then the quota.
void Vacate(Pass& pass) {
  const api::Condition& queued = ConditionOf(pass, ConditionType::kQueued);
  if (HasStopped(pass, queued.last_transition_time, kWhyEvicted)) DeleteAllPods(pass);
}

void Lose(Pass& pass, const ObservedWorkload* gang) {
  const bool inactive = gang != nullptr && !gang->deleting && !gang->active;
  std::string message = LossOf(gang);
  Wait(pass, inactive ? api::reason::kDeactivated : api::reason::kEvicted, message);
  DescribeHalt(pass, api::reason::kEvicted);
  if (!pass.spec.training.checkpoint) {
    absl::StrAppend(&message, "; without training.checkpoint it begins again at step 0");
  }
  pass.AddEvent(true, api::event::kEvicted, "Queue", std::move(message));
  AskHeadToStop(pass, kWhyEvicted);
}

void JoinQueue(Pass& pass) {
  absl::StatusOr<WorkloadClaim> claim = GangClaim(pass);
  if (!claim.ok()) {
    pass.WakeAt(pass.now + kLookAgain);
    return Wait(pass, api::reason::kInadmissible, std::string(claim.status().message()));
  }
  if (!WasWaiting(pass)) EnterQueue(pass);
  if (pass.seen.create_error) {
    Wait(pass, api::reason::kInadmissible, pass.seen.create_error->message);
  }
  auto made = std::make_shared<WorkloadClaim>(*std::move(claim));
  if (PrebuiltWorkloadOf(pass).empty()) return pass.AddStage({CreateWorkload{std::move(made)}});
  pass.AddStage({AdoptWorkload{std::move(made)}});
}

// It claims something else than the job asks for now.
bool IsOutdated(const Pass& pass, const ObservedWorkload& gang) {
  const absl::StatusOr<WorkloadClaim> claim = GangClaim(pass);
  return claim.ok() && Differs(gang, *claim, pass.spec);
}

// Whoever made the Workload for the job has to make another one.
bool IsOfAnother(Pass& pass, const ObservedWorkload& gang) {
  if (PrebuiltWorkloadOf(pass).empty() || !IsOutdated(pass, gang)) return false;
  Wait(pass, api::reason::kInadmissible,
       absl::StrCat("Workload ", gang.name, ", which metadata.labels[", api::kPrebuiltWorkloadLabel,
                    "] names, is not for this job as it is now: other pod sets, queue or priority "
                    "class; whoever made it has to make it anew"));
  return true;
}

// Nothing runs, and the Workload does not let anything begin.
void StayInQueue(Pass& pass, const WorkloadPtr& gang) {
  pass.status.uncounted.clear();
  if (DeleteElasticWorkloads(pass)) return;
  if (gang == nullptr) return JoinQueue(pass);
  if (gang->deleting) return;
  if (IsOfAnother(pass, *gang)) return;
  if (gang->Is(kFinished)) {  // it is never admitted again
    if (PrebuiltWorkloadOf(pass).empty()) return pass.AddStage({Deleted(*gang)});
    return Wait(pass, api::reason::kInadmissible,
                absl::StrCat(LossOf(gang.get()), "; whoever made it has to make it anew"));
  }
  DescribeWait(pass, *gang);
  const bool evicted = gang->evicted() && gang->holds_quota;
  const bool reserved = gang->holds_quota || gang->Is(kQuotaReserved);
  if ((evicted || !reserved) && IsOutdated(pass, *gang)) return pass.AddStage({Deleted(*gang)});
  if (evicted) pass.AddStage({Released(pass, gang)});
}

void LeaveForAttempt(Pass& pass, const ObservedWorkload& gang) {
  SetCondition(pass, ConditionType::kQueued, ConditionStatus::kFalse, api::reason::kAdmitted,
               MessageOf(gang, kQuotaReserved));
  pass.AddEvent(
      false, api::event::kAdmitted, "Queue",
      absl::StrCat("Workload ", gang.name, " is admitted: ", MessageOf(gang, kQuotaReserved)));
}

// What the admission before had is away before the next one's is made.
void Begin(Pass& pass, const ObservedWorkload& gang) {
  if (const auto unknown = UnknownFlavors(pass, gang); !unknown.empty()) {
    pass.paused = true;
    pass.WakeAt(pass.now + kLookAgain);
    return Wait(pass, api::reason::kPending,
                absl::StrCat("Workload ", gang.name,
                             " is admitted to a ResourceFlavor that cannot be read: ",
                             absl::StrJoin(unknown, ", ")));
  }
  if (!pass.PodsLeft() && IsOutdated(pass, gang)) {
    pass.paused = true;
    if (IsOfAnother(pass, gang)) return;
    Wait(pass, api::reason::kPending,
         "the job has changed since it was queued, and is queued again");
    return pass.AddStage({Deleted(gang)});
  }
  if (pass.before.attempt == 0) return LeaveForAttempt(pass, gang);
  pass.paused = true;
  if (pass.PodsLeft()) return Vacate(pass);
  if (ObjectsLeft(pass)) return DeleteObjects(pass);
  pass.paused = false;
  LeaveForAttempt(pass, gang);
  BeginAgain(pass);
}

// The job has no queue, or none any more.
void GoOnWithout(Pass& pass) {
  const bool waited = pass.before.attempt > 0 && WasWaiting(pass);
  if (waited) {
    pass.paused = true;
    if (pass.PodsLeft()) return Vacate(pass);
    if (ObjectsLeft(pass)) return DeleteObjects(pass);
    pass.paused = false;
    BeginAgain(pass);
  }
  SetCondition(pass, ConditionType::kQueued, ConditionStatus::kFalse, api::reason::kNotQueued);
}

// What was missed is there again.
void Stay(Pass& pass, const ObservedWorkload& gang) {
  if (ConditionOf(pass, ConditionType::kQueued).reason != api::reason::kWorkloadMissing) return;
  SetCondition(pass, ConditionType::kQueued, ConditionStatus::kFalse, api::reason::kAdmitted,
               MessageOf(gang, kQuotaReserved));
}

bool MissedLongEnough(Pass& pass) {
  const api::Condition& queued = ConditionOf(pass, ConditionType::kQueued);
  if (queued.reason != api::reason::kWorkloadMissing) {
    SetCondition(pass, ConditionType::kQueued, ConditionStatus::kFalse,
                 api::reason::kWorkloadMissing, "its Workload is gone");
    RestampCondition(pass, ConditionType::kQueued);
  }
  const base::WallTime due = queued.last_transition_time + kMissedFor;
  pass.WakeAt(due);
  return pass.now >= due;
}

bool AllEnded(const Pass& pass) {
  return std::all_of(pass.seen.pods.begin(), pass.seen.pods.end(),
                     [](const auto& pod) { return pod->ended(); });
}

}  // namespace

bool IsQueued(const Pass& pass) { return !QueueOf(pass).empty() || GangWorkload(pass) != nullptr; }

void EnterQueue(Pass& pass) {
  const std::string name = QueueOf(pass);
  Wait(pass, api::reason::kPending, absl::StrCat("the job joins queue ", name));
  pass.AddEvent(false, api::event::kQueued, "Queue", absl::StrCat("The job joins queue ", name));
}

void LeaveQueue(Pass& pass) {
  Stage stage;
  for (const auto& workload : pass.seen.workloads) {
    if (!workload->deleting) stage.push_back(Deleted(*workload));
  }
  pass.AddStage(std::move(stage));
  if (IsQueued(pass)) {
    SetCondition(pass, ConditionType::kQueued, ConditionStatus::kFalse, api::reason::kSuspended);
  }
}

void WaitInQueue(Pass& pass) {
  const bool runs = pass.before.attempt > 0 && !WasWaiting(pass);
  if (!IsQueued(pass)) return GoOnWithout(pass);
  if (runs && !NeedsAdmission(pass)) {
    SetCondition(pass, ConditionType::kQueued, ConditionStatus::kFalse, api::reason::kNotQueued,
                 "the job was begun without a queue; its label counts once it has been suspended");
    return;
  }
  if (pass.seen.queues.support != Support::kServed) {
    if (runs) return;
    pass.paused = true;
    pass.WakeAt(pass.now + kLookAgain);
    SetCondition(
        pass, ConditionType::kQueued, ConditionStatus::kFalse, api::reason::kKueueMissing,
        absl::StrCat("metadata.labels[", api::kQueueLabel,
                     "]: the cluster serves the operator no kueue.x-k8s.io/v1beta2; install "
                     "Kueue 0.15 or newer, give the operator its rights (kueue.enabled in the "
                     "chart), or remove the label"));
    return;
  }
  const WorkloadPtr gang = GangWorkload(pass);
  const bool admitted = gang != nullptr && gang->admitted();
  if (admitted && runs) return Stay(pass, *gang);
  if (admitted) return Begin(pass, *gang);
  if (runs && gang == nullptr && !MissedLongEnough(pass)) return;
  pass.paused = true;
  if (runs) return Lose(pass, gang.get());
  if (pass.PodsLeft()) return Vacate(pass);
  StayInQueue(pass, gang);
}

void TellPodsReady(Pass& pass) {
  const WorkloadPtr gang = GangWorkload(pass);
  if (gang == nullptr || !gang->admitted()) return;
  const bool ready = ConditionOf(pass, ConditionType::kRegistered).status == ConditionStatus::kTrue;
  const WorkloadCondition* told = gang->Find(kPodsReady);
  if (ready == gang->Is(kPodsReady) && (ready || told != nullptr)) return;
  if (!ready && told == nullptr) return;  // Kueue counts from the admission by itself
  UpdateWorkload update{.read = gang};
  update.conditions.push_back(
      ready ? Stamped(pass, *gang, kPodsReady, true, "Started", "All members have registered")
            : Stamped(pass, *gang, kPodsReady, false, "WaitForRecovery",
                      "A new attempt waits for its members"));
  pass.AddStage({std::move(update)});
}

void FinishWorkloads(Pass& pass) {
  if (pass.seen.workloads.empty() || !AllEnded(pass)) return;
  DeleteElasticWorkloads(pass);
  const WorkloadPtr gang = GangWorkload(pass);
  if (gang == nullptr || gang->deleting || gang->Is(kFinished)) return;
  const bool succeeded = pass.before.Is(ConditionType::kSucceeded);
  const api::Condition& verdict =
      ConditionOf(pass, succeeded ? ConditionType::kSucceeded : ConditionType::kFailed);
  UpdateWorkload update{.read = gang};
  update.conditions.push_back(Stamped(
      pass, *gang, kFinished, true, succeeded ? "Succeeded" : "Failed",
      succeeded ? "The training has finished"
                : absl::StrCat(verdict.reason, ": ", verdict.message.substr(0, kLongestVerdict))));
  pass.AddStage({std::move(update)});
}

}  // namespace hetero::plan
