#pragma once

#include "absl/status/status.h"
#include "runtime/source/dataset.h"

namespace hetero::feed {

// A label must mean the same class in both splits, or the accuracy means nothing. kInvalidArgument
// names the first class that does not.
absl::Status CheckSplitsAgree(const source::Dataset& train, const source::Dataset& validation);

}  // namespace hetero::feed
