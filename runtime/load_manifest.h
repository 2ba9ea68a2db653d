#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/hetero_training_job.h"

namespace hetero::commands {

// Reads, overrides and validates a manifest file. On failure prints every error with its field path
// to standard error and returns nothing; the caller exits with kExitUsage.
std::optional<api::HeteroTrainingJob> LoadManifest(const std::string& file,
                                                   const std::vector<std::string>& overrides);

}  // namespace hetero::commands
