#include "operator/plan/conditions.h"

#include <algorithm>
#include <utility>

#include "api/reasons.h"

namespace hetero::plan {
namespace {

using api::Condition;
using api::ConditionStatus;
using api::ConditionType;

Condition FirstState(ConditionType type) {
  Condition condition;
  condition.type = type;
  condition.status = ConditionStatus::kUnknown;
  switch (type) {
    case ConditionType::kCheckpointFailing:
      condition.status = ConditionStatus::kFalse;
      condition.reason = api::reason::kNoneFailed;
      break;
    case ConditionType::kSpecIgnored:
      condition.status = ConditionStatus::kFalse;
      condition.reason = api::reason::kFollowed;
      break;
    case ConditionType::kSuspended:
      condition.status = ConditionStatus::kFalse;
      condition.reason = api::reason::kNotSuspended;
      break;
    case ConditionType::kQueued:
      condition.status = ConditionStatus::kFalse;
      condition.reason = api::reason::kNotQueued;
      break;
    case ConditionType::kRestarting:
      condition.status = ConditionStatus::kFalse;
      condition.reason = api::reason::kFirstAttempt;
      break;
    case ConditionType::kFailed:
    case ConditionType::kSucceeded:
      condition.reason = api::reason::kNotFinished;
      break;
    case ConditionType::kStalled:
    case ConditionType::kRunning:
      condition.reason = api::reason::kNotStarted;
      break;
    case ConditionType::kRegistered:
    case ConditionType::kPodsCreated:
      condition.reason = api::reason::kCreatingPods;
      break;
  }
  return condition;
}

Condition& Mutable(api::JobStatus& status, ConditionType type) {
  return *std::find_if(status.conditions.begin(), status.conditions.end(),
                       [type](const Condition& condition) { return condition.type == type; });
}

}  // namespace

void BeginConditions(Pass& pass) {
  std::vector<Condition>& conditions = pass.status.conditions;
  for (int i = 0; i < api::kConditionTypes; ++i) {
    const auto type = static_cast<ConditionType>(i);
    if (pass.status.Find(type) != nullptr) continue;
    conditions.push_back(FirstState(type));
    conditions.back().last_transition_time = pass.today;
  }
  std::stable_sort(conditions.begin(), conditions.end(),
                   [](const Condition& a, const Condition& b) { return a.type < b.type; });
}

void SetCondition(Pass& pass, ConditionType type, ConditionStatus value, std::string reason,
                  std::string message) {
  Condition& condition = Mutable(pass.status, type);
  if (condition.status != value) condition.last_transition_time = pass.today;
  condition.status = value;
  condition.reason = std::move(reason);
  condition.message = std::move(message);
}

void DescribeHalt(Pass& pass, const std::string& reason) {
  for (const ConditionType type :
       {ConditionType::kRunning, ConditionType::kRegistered, ConditionType::kPodsCreated}) {
    SetCondition(pass, type, ConditionStatus::kFalse, reason);
  }
  for (const ConditionType type : {ConditionType::kRestarting, ConditionType::kStalled}) {
    if (ConditionOf(pass, type).status != ConditionStatus::kTrue) continue;
    SetCondition(pass, type, ConditionStatus::kFalse, reason);
  }
}

void RestampCondition(Pass& pass, ConditionType type) {
  Mutable(pass.status, type).last_transition_time = pass.today;
}

const Condition& ConditionOf(const Pass& pass, ConditionType type) {
  return *pass.status.Find(type);
}

bool WasTrue(const Pass& pass, ConditionType type) { return pass.before.Is(type); }

void StampGeneration(Pass& pass) {
  if (pass.spec_refused && pass.before.attempt > 0) return;  // what was accepted last still counts
  pass.status.observed_generation = pass.object.generation;
  for (Condition& condition : pass.status.conditions) {
    condition.observed_generation = pass.object.generation;
  }
}

}  // namespace hetero::plan
