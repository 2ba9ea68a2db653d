#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// Whether `slot` is the head's and its process hangs: it says nothing to the operator, and the
// kubelet of its own node finds it unready, which it once was. One of the two alone proves nothing:
// the operator may be cut off from a head that works, and a busy head may be late for a probe while
// it still reports. Never on a node that is silent itself (node_loss.h looks after that), and never
// of a head that has not answered anybody yet (the startup deadline does).
bool HeadHangs(Pass& pass, const Slot& slot);

// Whether `slot` is a worker's and its process hangs while the head waits for it: the head, which
// could have met it long ago, has not, and the kubelet of its own node finds it unready, which it
// once was. A head that took over from another knows whom it never met at most by name, as lost.
// Never on a node that is silent itself, and never of a process that has not been ready yet: who
// cannot reach any head never is.
bool HangsUnmet(Pass& pass, const Slot& slot);

}  // namespace hetero::plan
