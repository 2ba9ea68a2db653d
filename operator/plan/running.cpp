#include "operator/plan/running.h"

#include "api/reasons.h"
#include "operator/plan/conditions.h"

namespace hetero::plan {
namespace {

using api::ConditionStatus;
using api::ConditionType;

void TrainingRuns(Pass& pass) {
  const ConditionStatus earlier = ConditionOf(pass, ConditionType::kRunning).status;
  if (earlier == ConditionStatus::kUnknown) {
    pass.AddEvent(false, api::event::kJobStarted, "Start", "All required members have registered");
  }
  SetCondition(pass, ConditionType::kRunning, ConditionStatus::kTrue,
               api::reason::kTrainingStarted);
  SetCondition(pass, ConditionType::kStalled, ConditionStatus::kFalse, api::reason::kProgressing);
}

void TrainingWaits(Pass& pass, const std::string& message) {
  if (ConditionOf(pass, ConditionType::kRunning).status != ConditionStatus::kTrue) return;
  SetCondition(pass, ConditionType::kRunning, ConditionStatus::kFalse, api::reason::kRestarting,
               message);
}

}  // namespace

void DescribeRunning(Pass& pass) {
  const ObservedPod* head = pass.HeadPod();
  if (head == nullptr || head->runtime != ObservedPod::Runtime::kRunning) {
    TrainingWaits(pass, "the head is not running");
    return;
  }
  const HeadReport* report = pass.Report();
  if (report == nullptr || !report->connected) return;
  switch (report->state) {
    case HeadReport::State::kRunning:
      TrainingRuns(pass);
      return;
    case HeadReport::State::kWaiting:
      TrainingWaits(pass, "the head waits for members");
      return;
    case HeadReport::State::kUnknown:
    case HeadReport::State::kSucceeded:
    case HeadReport::State::kFailed:
    case HeadReport::State::kStopped:
      return;
  }
}

}  // namespace hetero::plan
