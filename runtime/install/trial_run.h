#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hetero::install {

// Runs `command` and gives what it wrote, to stdout and stderr together, at most 4 KiB of it. An
// error when it cannot be started, does not end with 0 or takes longer than 30 s; it says how it
// ended and what it wrote.
absl::StatusOr<std::string> TrialRun(const std::vector<std::string>& command);

}  // namespace hetero::install
