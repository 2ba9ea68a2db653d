#pragma once

#include <cstddef>
#include <functional>

#include "absl/status/status.h"

namespace hetero::source {

// Calls `work(i)` for every i below `count`, a few at a time, each in a thread of its own: what
// waits for storage waits together. They are begun in their order, and after an error none behind
// it; the error of the lowest i is returned, so that it is the same every time.
absl::Status InParallel(size_t count, const std::function<absl::Status(size_t)>& work);

}  // namespace hetero::source
