#pragma once

#include <functional>
#include <stop_token>

#include "absl/status/status.h"
#include "base/clock.h"

namespace hetero::base {

// Runs `write`, and as long as it ends with ResourceExhausted (no space left, which others may
// free) again each second, for at most `patience` or until `stop`. Returns its last status.
// `on_wait` is told of the first such end, before the wait.
absl::Status WriteWhenThereIsSpace(const std::function<absl::Status()>& write, Duration patience,
                                   Clock& clock,
                                   const std::function<void(const absl::Status&)>& on_wait,
                                   std::stop_token stop = {});

}  // namespace hetero::base
