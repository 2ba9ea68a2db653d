#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"

namespace hetero::base {

// Runs `write`, and as long as it ends with ResourceExhausted (no space left, which others may
// free) again each second, for at most `patience` or until `stop`. Returns its last status. The
// first such end is logged: `what` is waited for ("the trained weights").
absl::Status WriteWhenThereIsSpace(const std::string& what, Duration patience, Clock& clock,
                                   const std::function<absl::Status()>& write,
                                   std::stop_token stop = {});

}  // namespace hetero::base
