#include "operator/plan/stop_first.h"

#include "operator/plan/follow.h"

namespace hetero::plan {
namespace {

using State = HeadReport::State;

// Whether the head works on a training; one that cannot be heard may.
bool MayTrain(const Pass& pass) {
  const ObservedPod* head = pass.HeadPod();
  if (head == nullptr || head->deletion_time || head->runtime != ObservedPod::Runtime::kRunning) {
    return false;
  }
  const HeadReport* report = pass.Report();
  return report != nullptr && report->state == State::kRunning;
}

}  // namespace

void AskHeadToStop(Pass& pass) {
  if (!MayTrain(pass)) return;
  FollowHead(pass);
  pass.AddStage({StopHead{.reason = "the job is suspended"}});
}

bool HasStopped(Pass& pass) {
  const api::Condition* running = pass.before.Find(api::ConditionType::kRunning);
  if (running == nullptr || running->status == api::ConditionStatus::kTrue || !MayTrain(pass)) {
    return true;
  }
  const base::WallTime deadline =
      running->last_transition_time + std::chrono::seconds(pass.policy.stop_grace_seconds);
  if (pass.now >= deadline) return true;
  pass.WakeAt(deadline);
  FollowHead(pass);
  return false;
}

}  // namespace hetero::plan
