#include "operator/plan/verdict.h"

#include <algorithm>
#include <optional>

#include "api/reasons.h"
#include "operator/plan/ending.h"
#include "operator/plan/findings.h"
#include "operator/plan/progress.h"
#include "operator/plan/script_restarts.h"
#include "operator/plan/suspend.h"

namespace hetero::plan {
namespace {

using State = HeadReport::State;

void Apply(Pass& pass, const api::Verdict& verdict) {
  CopyProgress(pass);
  CopyFindings(pass);
  ChargeScriptRestarts(pass);
  if (verdict.succeeded) {
    CompleteJob(pass, verdict.result, verdict.message);
    return;
  }
  const bool known = !verdict.failure.pod.empty() || !verdict.failure.message.empty();
  if (!pass.status.first_failure && known) pass.status.first_failure = verdict.failure;
  FailJob(pass, api::reason::kTrainingFailed,
          verdict.message.empty() ? "the head has ended the training" : verdict.message);
}

std::optional<api::Verdict> FromReport(const Pass& pass) {
  const HeadReport* report = pass.Report();
  if (report == nullptr) return std::nullopt;
  if (report->state == State::kSucceeded) {
    api::Verdict verdict = report->verdict.value_or(api::Verdict{});
    verdict.succeeded = true;
    return verdict;
  }
  return report->state == State::kFailed ? report->verdict : std::nullopt;
}

std::optional<api::Verdict> FromHeadPod(const Pass& pass) {
  const ObservedPod* head = pass.HeadPod();
  if (head == nullptr || head->runtime != ObservedPod::Runtime::kTerminated) return std::nullopt;
  const bool told_to_end = head->disrupted || head->deletion_time.has_value();
  std::optional<api::Verdict> verdict = api::VerdictFromJson(head->message);
  if (verdict) return verdict->succeeded || !told_to_end ? verdict : std::nullopt;
  if (!head->succeeded() || told_to_end) return std::nullopt;
  return api::Verdict{.succeeded = true};
}

// A head that lives will say it itself, unless it took the place of the one that was told.
bool HeadHasNoSay(Pass& pass, base::WallTime trainers_ended) {
  const ObservedPod* head = pass.HeadPod();
  if (head == nullptr || head->runtime != ObservedPod::Runtime::kRunning) return true;
  const base::WallTime patience = trainers_ended + pass.settings.pod_kill_grace;
  pass.WakeAt(patience);
  return head->created >= trainers_ended || pass.now >= patience;
}

std::optional<api::Verdict> FromTrainers(Pass& pass) {
  const ObservedPod* rank_zero = nullptr;
  base::WallTime ended;
  for (const Slot& slot : pass.slots) {
    if (slot.role->type != api::RoleType::kGpuWorker) continue;
    if (slot.pod == nullptr || !slot.pod->succeeded()) return std::nullopt;
    if (rank_zero == nullptr) rank_zero = slot.pod;
    ended = std::max(ended, slot.pod->finished.value_or(slot.pod->created));
  }
  if (rank_zero == nullptr || !HeadHasNoSay(pass, ended)) return std::nullopt;
  return api::VerdictFromJson(rank_zero->message).value_or(api::Verdict{.succeeded = true});
}

}  // namespace

void ReadVerdict(Pass& pass) {
  std::optional<api::Verdict> verdict = FromReport(pass);
  if (!verdict) verdict = FromHeadPod(pass);
  if (!verdict) verdict = FromTrainers(pass);
  if (!verdict) return;
  // What ends because of a suspension proves no failure.
  if ((pass.policy.suspend || WasSuspended(pass)) && !verdict->succeeded) return;
  Apply(pass, *verdict);
}

}  // namespace hetero::plan
