#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"

// How the stores of a cluster are reached, said once by its administrator: entries that an operator
// adds to those of each job.
namespace hetero::api {

// A list in YAML or JSON, by the rules of spec.storage, but without secretRef: keys lie in a job's
// namespace and are named by the job. An error names every entry and field that is wrong, such as
// storage[1].endpoint. Pure, safe from any thread.
absl::StatusOr<std::vector<StorageAccess>> ParseStorageDefaults(std::string_view text);

// Puts those of `defaults` whose prefix no entry of `storage` has behind its last: where the job's
// own stand, says which variables hold their keys (storage_keys.h).
void AddStorageDefaults(const std::vector<StorageAccess>& defaults,
                        std::vector<StorageAccess>& storage);

}  // namespace hetero::api
