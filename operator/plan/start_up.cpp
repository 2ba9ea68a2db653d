#include "operator/plan/start_up.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "api/reasons.h"
#include "api/spec_hash.h"
#include "operator/plan/conditions.h"
#include "operator/plan/ending.h"
#include "operator/plan/registration.h"
#include "operator/plan/workload.h"

namespace hetero::plan {
namespace {

using api::ConditionStatus;
using api::ConditionType;

// Since when the job waits for members; none: it does not.
std::optional<base::WallTime> WaitingSince(const Pass& pass) {
  const api::Condition& registered = ConditionOf(pass, ConditionType::kRegistered);
  const api::Condition& running = ConditionOf(pass, ConditionType::kRunning);
  if (registered.status == ConditionStatus::kTrue) {
    if (running.status == ConditionStatus::kTrue) return std::nullopt;
    return std::max(registered.last_transition_time, running.last_transition_time);
  }
  const base::WallTime attempt_began =
      ConditionOf(pass, ConditionType::kRestarting).last_transition_time;
  return std::max(pass.status.start_time.value_or(attempt_began), attempt_began);
}

}  // namespace

void BeginFirstAttempt(Pass& pass) {
  if (pass.status.attempt == 0) {
    pass.OpenNextAttempt();
    pass.status.spec_hash = api::SpecHash(pass.spec);
  }
  if (!pass.status.start_time) pass.status.start_time = pass.today;
}

void BeginAgain(Pass& pass) {
  pass.OpenNextAttempt();
  pass.status.start_time = pass.today;
  pass.status.head_address.clear();
  pass.status.uncounted.clear();
  pass.status.spec_hash = api::SpecHash(pass.spec);
  for (const ConditionType type : {ConditionType::kPodsCreated, ConditionType::kRegistered}) {
    SetCondition(pass, type, ConditionStatus::kUnknown, api::reason::kCreatingPods);
  }
  SetCondition(pass, ConditionType::kRunning, ConditionStatus::kUnknown, api::reason::kNotStarted);
}

void CheckStartUp(Pass& pass) {
  const std::optional<base::WallTime> since = WaitingSince(pass);
  if (!since) return;
  // Pods that only an admission can bring are not missed while nobody can give one.
  if (NeedsAdmission(pass) && GangWorkload(pass) == nullptr) return;
  const std::chrono::seconds limit(pass.policy.startup_deadline_seconds);
  const base::WallTime deadline = *since + limit;
  pass.WakeAt(deadline);
  if (pass.now < deadline) return;
  const std::vector<MissingMember> missing = MissingMembers(pass);
  FailJob(pass, api::reason::kStartupDeadlineExceeded,
          absl::StrCat("runPolicy.startupDeadlineSeconds: not all required members have registered "
                       "within ",
                       limit.count(), " s; missing: ", ListMissing(missing)));
}

}  // namespace hetero::plan
