#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// runPolicy.suspend in both directions; sets pass.paused while nothing is to run.
//   suspend: a training is stopped with a checkpoint, then all pods are deleted; everything else
//            stays. Suspended is True once no pod is left.
//   resume:  first the pods that are left and the ConfigMap with its Secret go, since the spec may
//            have changed meanwhile; then a new attempt begins, at no cost, with a new startTime.
void SuspendOrResume(Pass& pass);

}  // namespace hetero::plan
