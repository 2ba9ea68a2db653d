#pragma once

#include <optional>

#include "operator/plan/failure.h"

namespace hetero::plan {

// The role's failureRules: the first that matches says what a failure leads to, otherwise the
// role's restartScope.
struct Decision {
  api::FailureAction action = api::FailureAction::kRestartPod;
  std::optional<size_t> rule;  // the one that matched
};
Decision Decide(const Failure& failure);

}  // namespace hetero::plan
