#include "operator/plan/failure_rules.h"

#include <algorithm>

namespace hetero::plan {
namespace {

bool Matches(const api::ExitCodes& codes, const Failure& failure) {
  if (!failure.exit_code) return false;
  const bool listed =
      std::find(codes.values.begin(), codes.values.end(), *failure.exit_code) != codes.values.end();
  switch (codes.op) {
    case api::ExitCodeOperator::kIn:
      return listed;
    case api::ExitCodeOperator::kNotIn:
      return !listed;
  }
  return false;
}

bool Matches(api::FailureReason reason, const Failure& failure) {
  switch (reason) {
    case api::FailureReason::kOomKilled:
      return failure.reason == "OOMKilled";
    case api::FailureReason::kEvicted:
      return failure.reason == "Evicted";
    case api::FailureReason::kDisruption:
      return failure.disruption;
  }
  return false;
}

bool Matches(const api::FailureRule& rule, const Failure& failure) {
  if (!rule.on_exit_codes && !rule.on_reason) return false;
  return (!rule.on_exit_codes || Matches(*rule.on_exit_codes, failure)) &&
         (!rule.on_reason || Matches(*rule.on_reason, failure));
}

Decision ByScope(const Failure& failure) {
  const bool gang = failure.slot->role->restart_scope == api::RestartScope::kGang;
  return {gang ? api::FailureAction::kRestartGang : api::FailureAction::kRestartPod, std::nullopt};
}

}  // namespace

Decision Decide(const Failure& failure) {
  switch (failure.kind) {  // rules are for what went wrong
    case Failure::Kind::kFailed:
      break;
    case Failure::Kind::kLeft:
      return {api::FailureAction::kRestartPod, std::nullopt};
    case Failure::Kind::kStopped:
      return {api::FailureAction::kRestartGang, std::nullopt};
    case Failure::Kind::kAsked:
      return ByScope(failure);
  }
  const std::vector<api::FailureRule>& rules = failure.slot->role->failure_rules;
  for (size_t i = 0; i < rules.size(); ++i) {
    if (Matches(rules[i], failure)) return {rules[i].action, i};
  }
  return ByScope(failure);
}

}  // namespace hetero::plan
