#include "operator/plan/failure_rules.h"

namespace hetero::plan {

api::FailureDecision Decide(const Failure& failure) {
  switch (failure.kind) {  // rules are for what went wrong
    case Failure::Kind::kFailed:
      break;
    case Failure::Kind::kLeft:
      return {api::FailureAction::kRestartPod, std::nullopt};
    case Failure::Kind::kStopped:
      return {api::FailureAction::kRestartGang, std::nullopt};
    case Failure::Kind::kAsked:
      return {failure.slot->role->restart_scope == api::RestartScope::kGang
                  ? api::FailureAction::kRestartGang
                  : api::FailureAction::kRestartPod,
              std::nullopt};
  }
  return api::DecideFailure(*failure.slot->role, failure.facts());
}

}  // namespace hetero::plan
