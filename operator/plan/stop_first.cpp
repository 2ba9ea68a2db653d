#include "operator/plan/stop_first.h"

#include "operator/plan/follow.h"

namespace hetero::plan {
namespace {

using State = HeadReport::State;

constexpr base::Duration kAskAgain = std::chrono::seconds(1);

// Whether the head works on a training, or has not been heard to its end. One that is not heard
// may: its stream is dialled anew, or this process has only just begun to listen.
bool MayTrain(const Pass& pass) {
  const ObservedPod* head = pass.HeadPod();
  if (head == nullptr || head->deletion_time || head->runtime == ObservedPod::Runtime::kWaiting) {
    return false;
  }
  const HeadReport* report = pass.Report();
  if (head->runtime == ObservedPod::Runtime::kTerminated) {
    // Its stream ends behind its last words, which the next attempt begins with.
    return report != nullptr && report->connected && report->state == State::kRunning;
  }
  if (report == nullptr) return true;
  switch (report->state) {
    case State::kUnknown:
    case State::kRunning:
      return true;
    case State::kWaiting:
      return !report->connected;  // it may have begun since
    case State::kSucceeded:
    case State::kFailed:
    case State::kStopped:
      return false;
  }
  return true;
}

void FollowAndAsk(Pass& pass, const std::string& reason) {
  FollowHead(pass);
  const HeadReport* report = pass.Report();
  if (report == nullptr || !report->connected || report->told_to_end) return;
  if (pass.HeadPod()->runtime != ObservedPod::Runtime::kRunning) return;  // it only is heard out
  pass.AddStage({StopHead{.reason = reason}});
  pass.WakeAt(pass.now + kAskAgain);
}

}  // namespace

void AskHeadToStop(Pass& pass, const std::string& reason) {
  if (MayTrain(pass)) FollowAndAsk(pass, reason);
}

bool HasStopped(Pass& pass, base::WallTime since, const std::string& reason) {
  if (!MayTrain(pass)) return true;
  const base::WallTime deadline = since + std::chrono::seconds(pass.policy.stop_grace_seconds);
  if (pass.now >= deadline) return true;
  pass.WakeAt(deadline);
  FollowAndAsk(pass, reason);
  return false;
}

}  // namespace hetero::plan
