#pragma once

#include <string>

#include "hetero/v1/history.pb.h"
#include "runtime/head/job_record.h"

namespace hetero::head {

// What the next head of `run` has to know of a job as it stands now (history.proto). Pure.
v1::History BuildHistory(const JobRecord& record, const std::string& run, Moment now);

}  // namespace hetero::head
