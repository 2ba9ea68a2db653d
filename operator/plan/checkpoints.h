#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// The condition CheckpointFailing, as the head tells it: training goes on, but what a restart would
// go back to grows old.
void DescribeCheckpoints(Pass& pass);

}  // namespace hetero::plan
