#include "operator/plan/node_loss.h"

namespace hetero::plan {
namespace {

const ObservedNode* NodeOf(const Pass& pass, const ObservedPod& pod) {
  const auto node = pass.seen.nodes.find(pod.node);
  return node == pass.seen.nodes.end() ? nullptr : &node->second;
}

}  // namespace

bool OnSilentNode(const Pass& pass, const ObservedPod& pod) {
  const ObservedNode* node = NodeOf(pass, pod);
  return node != nullptr && !node->ready;
}

bool OnLostNode(Pass& pass, const ObservedPod& pod) {
  if (!OnSilentNode(pass, pod)) return false;
  const base::WallTime lost = NodeOf(pass, pod)->since + pass.settings.node_lost_grace;
  pass.WakeAt(lost);
  return pass.now >= lost;
}

bool StuckTerminating(Pass& pass, const ObservedPod& pod) {
  if (!pod.deletion_time) return false;
  const base::WallTime overdue = *pod.deletion_time + pass.settings.pod_kill_grace;
  pass.WakeAt(overdue);
  return pass.now >= overdue || OnLostNode(pass, pod);
}

}  // namespace hetero::plan
