#pragma once

#include <optional>
#include <string>

#include "runtime/head/job_record.h"
#include "runtime/insight/speed.h"

namespace hetero::head {

// What the members' counters say about the job's speed. Empty before the first step and for
// input-only runs.
insight::SpeedVerdict JudgeSpeed(const JobRecord& record);

// Its sentence: "input-bound: 41 % of each step waits for data; 2 more cpu replicas: 1.6 times the
// rate".
std::string Verdict(const JobRecord& record);

// Of one replica; absent where the manifest gives none.
std::optional<double> PricePerHour(const api::Role& role);

}  // namespace hetero::head
