#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// Completes status.images of an attempt that an operator began which did not keep them: they are
// those of the attempt's pods, and where no pod tells, this operator's own. So another operator's
// images, after an upgrade, are only those of the next attempt.
void RememberImages(Pass& pass);

}  // namespace hetero::plan
