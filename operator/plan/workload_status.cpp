#include "operator/plan/workload_status.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "api/reasons.h"

namespace hetero::plan {
namespace {

using namespace workload_condition;

// Reasons of Evicted upon which a Workload is queued again at once: as Kueue's own controllers have
// it for the jobs that they know (pkg/controller/jobframework). Of others Kueue itself says when.
constexpr char kPreempted[] = "Preempted";
constexpr char kNodeFailures[] = "NodeFailures";

constexpr char kWaitForStart[] = "WaitForStart";

}  // namespace

std::string MessageOf(const ObservedWorkload& workload, const char* type) {
  const WorkloadCondition* condition = workload.Find(type);
  return condition == nullptr ? "" : condition->message;
}

std::string LossOf(const ObservedWorkload* workload) {
  if (workload == nullptr || workload->deleting) return "its Workload was deleted";
  if (!workload->active) {
    return absl::StrCat("spec.active of Workload ", workload->name,
                        " is false; set it to true to have it queued again");
  }
  if (workload->Is(kFinished)) {
    return absl::StrCat("Workload ", workload->name, " was set to Finished by somebody else");
  }
  const std::string why = MessageOf(*workload, kEvicted);
  return why.empty() ? absl::StrCat("Workload ", workload->name, " is not admitted any more") : why;
}

WorkloadCondition Stamped(const Pass& pass, const ObservedWorkload& workload, const char* type,
                          bool holds, std::string reason, std::string message) {
  return {.type = type,
          .status = holds ? "True" : "False",
          .reason = std::move(reason),
          .message = std::move(message),
          .last_transition_time = pass.today,
          .observed_generation = workload.generation};
}

// As Kueue's pkg/workload does it, UnsetQuotaReservationWithCondition and SetRequeuedCondition.
UpdateWorkload Released(const Pass& pass, std::shared_ptr<const ObservedWorkload> workload) {
  const WorkloadCondition* evicted = workload->Find(kEvicted);
  std::string reason = evicted == nullptr ? api::reason::kDeactivated : evicted->reason;
  // Only of this very word does Kueue see, once it is activated again, that it may be queued again.
  if (reason.starts_with(api::reason::kDeactivated)) reason = api::reason::kDeactivated;
  const std::string message = LossOf(workload.get());
  UpdateWorkload update{.release = true};
  const auto set = [&](const char* type, bool holds, std::string why, std::string text) {
    update.conditions.push_back(
        Stamped(pass, *workload, type, holds, std::move(why), std::move(text)));
  };
  set(kQuotaReserved, false, api::reason::kPending, message);
  set(kAdmitted, false, "NoReservation", "The workload has no reservation");
  set(kRequeued, reason == kPreempted || reason == kNodeFailures, reason, message);
  // Kueue counts how long a gang has not been ready from the time of this condition.
  const WorkloadCondition* ready = workload->Find(kPodsReady);
  if (ready != nullptr && (ready->status != "False" || ready->reason != kWaitForStart)) {
    set(kPodsReady, false, kWaitForStart, "Not all pods are ready");
  }
  update.read = std::move(workload);
  return update;
}

DeleteChild Deleted(const ObservedWorkload& workload) {
  return {.kind = ChildKind::kWorkload, .name = workload.name, .uid = workload.uid};
}

}  // namespace hetero::plan
