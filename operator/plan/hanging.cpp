#include "operator/plan/hanging.h"

#include <algorithm>

#include "operator/plan/members.h"
#include "operator/plan/node_loss.h"

namespace hetero::plan {
namespace {

// A head reports every second. The kubelet has waited for three probes before it says "unready".
constexpr std::chrono::seconds kLongestSilence(15);

}  // namespace

bool HeadHangs(Pass& pass, const Slot& slot) {
  if (slot.role->type != api::RoleType::kHead) return false;
  const ObservedPod& pod = *slot.pod;
  if (pod.runtime != ObservedPod::Runtime::kRunning || !pod.unready_since) return false;
  const std::optional<HeadReport>& report = pass.seen.head;
  if (!report || report->attempt != pass.status.attempt || OnSilentNode(pass, pod)) return false;
  const base::WallTime deadline =
      std::max(report->silent_since, *pod.unready_since) + kLongestSilence;
  // Until then either may change its mind.
  pass.WakeAt(deadline);
  return pass.now >= deadline;
}

bool HangsUnmet(Pass& pass, const Slot& slot) {
  if (slot.role->type == api::RoleType::kHead) return false;
  const ObservedPod& pod = *slot.pod;
  if (pod.runtime != ObservedPod::Runtime::kRunning || !pod.unready_since) return false;
  const ObservedPod* head = pass.HeadPod();
  const HeadReport* report = pass.Report();
  if (head == nullptr || head->runtime != ObservedPod::Runtime::kRunning || report == nullptr ||
      !report->connected || report->state != HeadReport::State::kWaiting ||
      report->head_incarnation != head->incarnation || OnSilentNode(pass, pod)) {
    return false;
  }
  const HeadReport::Member* member = MemberOf(pass, slot);
  // One that is lost may be known from the history of an earlier head alone.
  const bool lost = member != nullptr && member->lost && !member->connected;
  if (member != nullptr && member->incarnation >= pod.incarnation && !lost) return false;
  const base::WallTime deadline = std::max(head->created, *pod.unready_since) + kLongestSilence;
  pass.WakeAt(deadline);
  return pass.now >= deadline;
}

}  // namespace hetero::plan
