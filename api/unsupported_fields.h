#pragma once

#include <vector>

#include "api/hetero_training_job.h"
#include "api/manifest.h"

namespace hetero::api {

// Fields of a valid manifest that this version of the runtime cannot honour (S3, some formats,
// ...), each with the reason. Empty when the job can run. A job that uses one is refused by name,
// on one machine and by the operator, instead of being run without it.
std::vector<FieldError> UnsupportedFields(const HeteroTrainingJob& job);

}  // namespace hetero::api
