#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// runPolicy.activeDeadlineSeconds, counted from status.startTime, which a resume sets anew.
void CheckActiveDeadline(Pass& pass);

// runPolicy.maxWaitSeconds, counted from the job's creation or its last resume until its first
// step; whatever it waits for, a queue included.
void CheckMaxWait(Pass& pass);

}  // namespace hetero::plan
