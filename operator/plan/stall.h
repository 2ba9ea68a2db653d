#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// runPolicy.stallTimeoutSeconds: a running job without a step for that long is Stalled and its gang
// restarted at the cost of one. Silence of the stream proves nothing.
void CheckStall(Pass& pass);

}  // namespace hetero::plan
