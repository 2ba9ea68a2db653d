#include "operator/plan/ending.h"

#include "api/reasons.h"
#include "operator/plan/conditions.h"

namespace hetero::plan {
namespace {

using api::ConditionStatus;
using api::ConditionType;

void Finish(Pass& pass, bool succeeded, const std::string& reason, const std::string& message) {
  const auto decide = [&pass, &reason, &message](ConditionType type, bool holds) {
    SetCondition(pass, type, holds ? ConditionStatus::kTrue : ConditionStatus::kFalse, reason,
                 holds ? message : "");
  };
  decide(ConditionType::kSucceeded, succeeded);
  decide(ConditionType::kFailed, !succeeded);
  SetCondition(pass, ConditionType::kRunning, ConditionStatus::kFalse, api::reason::kFinished);
  for (const ConditionType type : {ConditionType::kRestarting, ConditionType::kStalled,
                                   ConditionType::kSuspended, ConditionType::kQueued}) {
    if (ConditionOf(pass, type).status == ConditionStatus::kFalse) continue;
    SetCondition(pass, type, ConditionStatus::kFalse, api::reason::kFinished);
  }
  pass.status.completion_time = pass.today;
  pass.status.uncounted.clear();
  pass.status.history.clear();  // no other head will ask
}

void AdmitLate(Pass& pass, ConditionType type, const char* reason) {
  if (ConditionOf(pass, type).status == ConditionStatus::kTrue) return;
  SetCondition(pass, type, ConditionStatus::kTrue, reason);
}

}  // namespace

void FailJob(Pass& pass, const std::string& reason, const std::string& message) {
  if (pass.status.finished()) return;
  Finish(pass, false, reason, message);
  pass.AddEvent(
      true, reason == api::reason::kInvalidSpec ? api::event::kInvalidSpec : api::event::kJobFailed,
      "Finish", reason == api::reason::kInvalidSpec ? message : reason + ": " + message);
}

void CompleteJob(Pass& pass, const api::JobResult& result, const std::string& message) {
  if (pass.status.finished()) return;
  pass.status.result = result;
  // A job may be over before anybody saw it begin; without all of its pods it could not have ended.
  AdmitLate(pass, ConditionType::kPodsCreated, api::reason::kAllCreated);
  AdmitLate(pass, ConditionType::kRegistered, api::reason::kAllRegistered);
  Finish(pass, true, api::reason::kTrainingFinished, message);
  // The head's summary has many lines; an event is one.
  pass.AddEvent(
      false, api::event::kJobSucceeded, "Finish",
      message.empty() ? "The training has finished" : message.substr(0, message.find('\n')));
}

}  // namespace hetero::plan
