#include "operator/plan/hanging_head.h"

#include <algorithm>

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

}  // namespace hetero::plan
