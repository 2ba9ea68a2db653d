#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/hetero_training_job.h"
#include "api/manifest.h"

namespace hetero::commands {

// Reads, overrides and validates a manifest file. On failure prints every error with its field path
// to standard error and returns nothing; the caller exits with kExitUsage.
std::optional<api::HeteroTrainingJob> LoadManifest(const std::string& file,
                                                   const std::vector<std::string>& overrides);

// The same of the file that an operator gives to a head, which may have entries of its own in
// spec.storage.
std::optional<api::HeteroTrainingJob> LoadJobDocument(const std::string& file);

// Prints the errors of a manifest file, with their number, to standard error. Returns kExitUsage.
int PrintErrors(const std::string& file, const std::vector<api::FieldError>& errors);

}  // namespace hetero::commands
