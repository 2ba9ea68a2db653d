#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"

namespace hetero::feed {

// What decides the pixels besides the job and the data: versions of the libraries that decode, and
// the checksums of plugins. Errors of reading a plugin.
absl::StatusOr<std::map<std::string, std::string>> PixelEnvironment(
    const std::vector<api::OperatorSpec>& operators);

}  // namespace hetero::feed
