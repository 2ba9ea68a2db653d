#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"

namespace hetero::compare {

// A job without its CPU workers, whose trainers do all preprocessing themselves, and the same job
// with them; else alike.
struct BaselineJobs {
  api::HeteroTrainingJob alone, together;
};

// Of `job`, each with at most `steps` steps and without checkpoints, from which the second would
// go on. kInvalidArgument: it has no CPU workers, or is not valid without them; the message says
// why. Pure.
absl::StatusOr<BaselineJobs> BaselineJobsOf(const api::HeteroTrainingJob& job, int64_t steps);

}  // namespace hetero::compare
