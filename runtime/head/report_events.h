#pragma once

#include <string>

#include "base/clock.h"
#include "runtime/head/job_record.h"
#include "runtime/insight/report.h"

namespace hetero::head {

// "Running".
std::string StateName(v1::JobStatus::State state);
// "2026-11-27T19:43:00.000Z".
std::string Rfc3339(base::WallTime time);

// What happened in the job, and what rules found in it: faults, disruptions, findings.
void AddEvents(const JobRecord& record, insight::Report& report);

}  // namespace hetero::head
