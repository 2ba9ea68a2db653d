#include "operator/plan/last_report.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "api/reasons.h"
#include "operator/plan/findings.h"
#include "operator/plan/follow.h"
#include "operator/plan/progress.h"

namespace hetero::plan {
namespace {

constexpr base::Duration kTellAgain = std::chrono::seconds(1);

// Of the reasons for which a job fails, those of which its head knows nothing.
constexpr std::array<std::string_view, 5> kOperatorsReasons = {
    api::reason::kDeadlineExceeded, api::reason::kStartupDeadlineExceeded,
    api::reason::kMaxRestartsExceeded, api::reason::kRuleMatched, api::reason::kBudgetExceeded};

// The condition that says why; null: the head ended the job, or knows of its end.
const api::Condition* OperatorsVerdict(const Pass& pass) {
  const api::Condition* failed = pass.before.Find(api::ConditionType::kFailed);
  if (failed == nullptr || failed->status != api::ConditionStatus::kTrue) return nullptr;
  const bool ours = std::find(kOperatorsReasons.begin(), kOperatorsReasons.end(), failed->reason) !=
                    kOperatorsReasons.end();
  return ours ? failed : nullptr;
}

std::optional<api::Verdict> HeadsAnswer(const Pass& pass, const ObservedPod& head) {
  if (const HeadReport* report = pass.Report(); report != nullptr && report->verdict) {
    return report->verdict;
  }
  if (head.runtime != ObservedPod::Runtime::kTerminated) return std::nullopt;
  return api::VerdictFromJson(head.message);
}

}  // namespace

bool AwaitLastReport(Pass& pass) {
  const api::Condition* verdict = OperatorsVerdict(pass);
  const ObservedPod* head = pass.HeadPod();
  if (verdict == nullptr || pass.before.result || head == nullptr) return false;
  if (const std::optional<api::Verdict> answer = HeadsAnswer(pass, *head)) {
    CopyProgress(pass);
    CopyFindings(pass);
    pass.status.result = answer->result;
    return false;
  }
  if (head->runtime != ObservedPod::Runtime::kRunning || head->deletion_time) return false;
  base::WallTime patience =
      pass.before.completion_time.value_or(pass.now) + pass.settings.last_report_grace;
  if (pass.spec.training.checkpoint) {
    patience += std::chrono::seconds(pass.policy.stop_grace_seconds);
  }
  if (pass.now >= patience) return false;
  FollowHead(pass);
  if (!pass.plan.follow) return false;
  pass.WakeAt(patience);
  const HeadReport* report = pass.Report();
  if (report == nullptr || !report->connected || report->told_to_end) return true;
  pass.AddStage({StopHead{.failure = verdict->reason, .reason = verdict->message}});
  pass.WakeAt(pass.now + kTellAgain);
  return true;
}

}  // namespace hetero::plan
