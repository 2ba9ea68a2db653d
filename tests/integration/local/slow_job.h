#pragma once

#include <string>
#include <vector>

#include "tests/integration/support/program_run.h"

namespace hetero::testing {

// SmallJobYaml() with 2 x 1,024 samples in 32 steps of 64, stretched by waiting and not by work, so
// that it can be struck in the middle on a busy machine.
std::vector<std::string> SlowJob(const std::vector<std::string>& more = {});
inline constexpr int kSlowJobSteps = 32;
inline constexpr int kSlowJobSamples = 2048;

// Digest of the stream of SlowJob() when nothing happens; computed once.
const std::string& UndisturbedDigest();

// Waits for the first step of `generation`, or a later one, in the log of `name`.
bool WaitForFirstStep(LocalRun& run, const std::string& name, int generation = 1);

// The numbers that follow `field`= in the lines of a log that hold `text`.
std::vector<int> NumbersInLog(const std::string& log, const std::string& text,
                              const std::string& field);

// The report of a job that must have come to its end as if nothing had happened.
nlohmann::json ExpectUndisturbedResult(LocalRun& run);

}  // namespace hetero::testing
