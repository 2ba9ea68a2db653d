#include "operator/plan/deadline.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "api/reasons.h"
#include "api/run_limits.h"
#include "operator/plan/conditions.h"
#include "operator/plan/ending.h"

namespace hetero::plan {
namespace {

// More than fits into a time of day never comes.
std::chrono::seconds Limit(int64_t seconds) {
  return std::chrono::seconds(std::min<int64_t>(seconds, std::numeric_limits<int32_t>::max()));
}

constexpr base::Duration kListenAgain = std::chrono::seconds(1);

bool HasStepped(const Pass& pass) {
  const HeadReport* report = pass.Report();
  const bool tells = report != nullptr && report->progress && report->progress->step > 0;
  return tells || (pass.before.progress && pass.before.progress->step > 0);
}

// What such a job waits for, in the words of the condition that tells.
std::string WhyItWaits(const Pass& pass) {
  for (const api::ConditionType type :
       {api::ConditionType::kQueued, api::ConditionType::kPodsCreated,
        api::ConditionType::kRegistered}) {
    const api::Condition& condition = ConditionOf(pass, type);
    const bool waits = type == api::ConditionType::kQueued
                           ? condition.status == api::ConditionStatus::kTrue
                           : condition.status != api::ConditionStatus::kTrue;
    if (waits && !condition.message.empty()) return absl::StrCat("; ", condition.message);
  }
  return "";
}

}  // namespace

void CheckMaxWait(Pass& pass) {
  if (!pass.policy.max_wait_seconds || HasStepped(pass)) return;
  base::WallTime since = pass.object.created;
  const api::Condition& suspended = ConditionOf(pass, api::ConditionType::kSuspended);
  if (suspended.reason == api::reason::kResumed) {
    since = std::max(since, suspended.last_transition_time);
  }
  if (since == base::WallTime()) return;  // not known
  const std::chrono::seconds limit = Limit(*pass.policy.max_wait_seconds);
  pass.WakeAt(since + limit);
  if (pass.now < since + limit) return;
  // The status is behind the head by seconds, and this process may have only just begun to listen.
  const ObservedPod* head = pass.HeadPod();
  const bool works = head != nullptr && head->runtime == ObservedPod::Runtime::kRunning;
  const HeadReport* report = pass.Report();
  if (works && (report == nullptr || !report->connected)) {
    pass.WakeAt(pass.now + kListenAgain);
    return;
  }
  FailJob(pass, api::reason::kMaxWaitExceeded,
          absl::StrCat("runPolicy.maxWaitSeconds: no step within ", limit.count(), " s",
                       WhyItWaits(pass)));
}

void CheckActiveDeadline(Pass& pass) {
  if (!pass.policy.active_deadline_seconds || !pass.status.start_time) return;
  const std::chrono::seconds limit = Limit(*pass.policy.active_deadline_seconds);
  const base::WallTime deadline = *pass.status.start_time + limit;
  pass.WakeAt(deadline);
  if (pass.now < deadline) return;
  FailJob(pass, api::reason::kDeadlineExceeded, api::DescribeActiveDeadline(limit.count()));
}

}  // namespace hetero::plan
