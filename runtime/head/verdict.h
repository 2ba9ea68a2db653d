#pragma once

#include <string>

#include "runtime/head/job_record.h"

namespace hetero::head {

// What limits the job, in one sentence: "input-bound: 41 % of each step waits for data". Empty
// before the first step and for input-only runs. Input-bound begins at 10 % of rank 0's time.
std::string Verdict(const JobRecord& record);

}  // namespace hetero::head
