#include "operator/plan/multikueue.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/labels.h"
#include "api/reasons.h"
#include "operator/plan/refusals.h"
#include "operator/plan/workload.h"
#include "operator/plan/workload_status.h"

namespace hetero::plan {
namespace {

// Each time it is told again; the recorder makes one series of equal events.
constexpr base::Duration kHinderedAgain = std::chrono::minutes(1);

void TellWhatHinders(Pass& pass, std::string what) {
  pass.AddEvent(true, api::event::kNotQueued, "Queue", std::move(what));
  pass.WakeAt(pass.now + kHinderedAgain);
}

// Nothing can be claimed for a spec that no pods can be made of.
std::string WrongSpec(const Pass& pass) {
  std::vector<std::string> errors = Refusals(pass);
  for (const api::FieldError& error : pass.object.errors) {
    errors.push_back(absl::StrCat(error.path, ": ", error.reason));
  }
  return absl::StrJoin(errors, "; ");
}

void ClaimQuota(Pass& pass) {
  if (std::string wrong = WrongSpec(pass); !wrong.empty()) {
    return TellWhatHinders(pass, std::move(wrong));
  }
  absl::StatusOr<WorkloadClaim> claim = GangClaim(pass);
  if (!claim.ok()) return TellWhatHinders(pass, std::string(claim.status().message()));
  if (pass.seen.create_error) TellWhatHinders(pass, pass.seen.create_error->message);
  pass.AddStage({CreateWorkload{std::make_shared<WorkloadClaim>(*std::move(claim))}});
}

bool AsksForAnotherThanTheJob(const Pass& pass, const ObservedWorkload& gang) {
  const absl::StatusOr<WorkloadClaim> claim = GangClaim(pass);
  return claim.ok() && Differs(gang, *claim, pass.spec);
}

}  // namespace

// A copy that is away because the quota is gone has no pods in this cluster that would have to be
// waited for.
void KeepWorkloadForMultiKueue(Pass& pass) {
  if (pass.before.finished()) return;  // MultiKueue finishes the Workload, too
  if (pass.seen.queues.support != ObservedQueues::Support::kServed) {
    if (!QueueOf(pass).empty()) pass.WakeAt(pass.now + kHinderedAgain);
    return;
  }
  const std::shared_ptr<const ObservedWorkload> gang = GangWorkload(pass);
  if (gang == nullptr) {
    if (!pass.policy.suspend && !QueueOf(pass).empty()) ClaimQuota(pass);
    return;
  }
  if (gang->deleting || gang->Is(workload_condition::kFinished)) return;
  const bool reserved = gang->holds_quota || gang->Is(workload_condition::kQuotaReserved);
  const bool outdated =
      QueueOf(pass).empty() || (!reserved && AsksForAnotherThanTheJob(pass, *gang));
  if (pass.policy.suspend || outdated) return pass.AddStage({Deleted(*gang)});
  if (gang->evicted() && gang->holds_quota) pass.AddStage({Released(pass, gang)});
}

bool IsCopyOfMultiKueue(const Pass& pass) {
  return pass.metadata.labels.contains(api::kMultiKueueOriginLabel);
}

}  // namespace hetero::plan
