#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// status.roleStatuses and status.registered. Of a job that has just ended nothing runs any more;
// afterwards they stay as they are.
void CountRoles(Pass& pass);

}  // namespace hetero::plan
