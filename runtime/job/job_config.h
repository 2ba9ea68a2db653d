#pragma once

#include <vector>

#include "operator/api/hetero_training_job.h"
#include "operator/api/manifest.h"

namespace hetero::job {

// Fields of a valid manifest that this version of the runtime cannot honour (checkpoint, BF16, S3,
// plugins, ...), each with the reason. Empty when the job can run. A job that uses one is refused
// by name instead of being run without it. Fields that only the operator acts on (runPolicy's
// clean-up, TTL, suspend, failure rules, pod templates, network) are not reported here.
std::vector<api::FieldError> UnsupportedFields(const api::HeteroTrainingJob& job);

}  // namespace hetero::job
