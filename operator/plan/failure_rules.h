#pragma once

#include "api/failure_decision.h"
#include "operator/plan/failure.h"

namespace hetero::plan {

// What a failure leads to: the role's failureRules, otherwise its restartScope; what is nobody's
// fault is asked of no rule.
api::FailureDecision Decide(const Failure& failure);

}  // namespace hetero::plan
