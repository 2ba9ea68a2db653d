#pragma once

#include "hetero/v1/status.pb.h"
#include "runtime/head/job_record.h"
#include "runtime/head/role_plan.h"

namespace hetero::head {

// The status that Watch sends. report_uri stays empty: only who writes the report knows it.
v1::JobStatus BuildStatus(const JobRecord& record, const RolePlan& plan);

}  // namespace hetero::head
