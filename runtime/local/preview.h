#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "api/hetero_training_job.h"

namespace hetero::local {

// Writes a contact sheet of the first `samples` training samples of epoch 0, as the pipeline yields
// them, with sample id and class, and behind each its further views. The pictures are those that
// training would see. Modules of Python operators are looked for in `folders`, too.
absl::Status WritePreview(const api::HeteroTrainingJob& job, int64_t samples,
                          const std::vector<std::string>& folders, const std::string& file);

}  // namespace hetero::local
