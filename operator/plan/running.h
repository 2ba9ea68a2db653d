#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// Conditions Running and Stalled from the head's report; without one the last word stands, unless
// the head's pod is gone.
void DescribeRunning(Pass& pass);

}  // namespace hetero::plan
