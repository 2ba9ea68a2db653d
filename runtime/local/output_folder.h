#pragma once

#include <string>

#include "absl/status/status.h"
#include "api/hetero_training_job.h"

// The folder that a local job leaves its results in.
namespace hetero::local {

// Whether `job`, read from the file `manifest`, may begin in `folder`, where it removes what a run
// before it has left: not where somebody else's files have the names of its own, and not where it
// is to read its weights from. Errors name the file or the field, and the remedy. A folder that is
// not there is fine.
absl::Status CheckOutputFolder(const std::string& folder, const std::string& manifest,
                               const api::HeteroTrainingJob& job);

// Creates `folder` and proves that a report can be written there. Errors name the folder and the
// reason.
absl::Status PrepareOutputFolder(const std::string& folder);

// Removes what a run before has left; the curves stay when `job` goes on from checkpoints.
void RemoveOldResults(const std::string& folder, const api::HeteroTrainingJob& job);

}  // namespace hetero::local
