#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// runPolicy.activeDeadlineSeconds, counted from status.startTime, which a resume sets anew.
void CheckActiveDeadline(Pass& pass);

}  // namespace hetero::plan
