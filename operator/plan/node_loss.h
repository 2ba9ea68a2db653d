#pragma once

#include "operator/plan/pass.h"

// What a node that no longer answers means for its pods: nothing for settings.node_lost_grace, then
// they are lost and deleted without waiting for its kubelet.
namespace hetero::plan {

// Whether the pod's node is known to be NotReady, for however short a time.
bool OnSilentNode(const Pass& pass, const ObservedPod& pod);
// Whether it has been so for the grace; asks for a pass at its end.
bool OnLostNode(Pass& pass, const ObservedPod& pod);

// Whether the pod is Terminating and nobody will finish that: its node is lost, or it is overdue by
// settings.pod_kill_grace. Asks for a pass when that will be so.
bool StuckTerminating(Pass& pass, const ObservedPod& pod);

}  // namespace hetero::plan
