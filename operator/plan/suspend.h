#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// runPolicy.suspend in both directions; sets pass.paused while nothing is to run.
//   suspend: a training is stopped with a checkpoint, then all pods are deleted; everything else
//            stays. Suspended is True once no pod is left.
//   resume:  first the pods that are left, once their training has stopped, and all other objects
//            go, since the spec may have changed meanwhile; then a new attempt begins, at no cost,
//            with a new startTime. A spec that is refused is not resumed.
// A spec that only a suspended job may have got, in a suspension that no pass saw, is resumed in
// the same way.
void SuspendOrResume(Pass& pass);

// Whether the status as read says that pods are being deleted, or gone, because of a suspension.
bool WasSuspended(const Pass& pass);

}  // namespace hetero::plan
