#pragma once

#include <string>

#include "operator/plan/pass.h"

namespace hetero::plan {

// status.roleStatuses and status.registered. Of a job that has just ended nothing runs any more;
// afterwards they stay as they are.
void CountRoles(Pass& pass);

// The entry of `role` in status.roleStatuses; made when it is not there.
api::RoleCounts& CountsOf(api::JobStatus& status, const std::string& role);

}  // namespace hetero::plan
