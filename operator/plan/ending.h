#pragma once

#include <string>

#include "api/job_status.h"
#include "operator/plan/pass.h"

// The two ends of a job. Exclusive and final: on a finished job both do nothing.
namespace hetero::plan {

void FailJob(Pass& pass, const std::string& reason, const std::string& message);
void CompleteJob(Pass& pass, const api::JobResult& result, const std::string& message);

}  // namespace hetero::plan
