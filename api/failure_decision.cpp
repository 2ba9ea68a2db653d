#include "api/failure_decision.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "api/enums.h"

namespace hetero::api {
namespace {

bool Matches(const ExitCodes& codes, const FailureFacts& failure) {
  if (!failure.exit_code) return false;
  const bool listed =
      std::find(codes.values.begin(), codes.values.end(), *failure.exit_code) != codes.values.end();
  switch (codes.op) {
    case ExitCodeOperator::kIn:
      return listed;
    case ExitCodeOperator::kNotIn:
      return !listed;
  }
  return false;
}

bool Matches(FailureReason reason, const FailureFacts& failure) {
  switch (reason) {
    case FailureReason::kOomKilled:
      return failure.reason == "OOMKilled";
    case FailureReason::kEvicted:
      return failure.reason == "Evicted";
    case FailureReason::kDisruption:
      return failure.disruption;
  }
  return false;
}

bool Matches(const FailureRule& rule, const FailureFacts& failure) {
  if (!rule.on_exit_codes && !rule.on_reason) return false;
  return (!rule.on_exit_codes || Matches(*rule.on_exit_codes, failure)) &&
         (!rule.on_reason || Matches(*rule.on_reason, failure));
}

}  // namespace

FailureDecision DecideFailure(const Role& role, const FailureFacts& failure) {
  const std::vector<FailureRule>& rules = role.failure_rules;
  for (size_t i = 0; i < rules.size(); ++i) {
    if (Matches(rules[i], failure)) return {rules[i].action, i};
  }
  const bool gang = role.restart_scope == RestartScope::kGang;
  return {gang ? FailureAction::kRestartGang : FailureAction::kRestartPod, std::nullopt};
}

std::string DescribeRule(const Role& role, size_t rule) {
  return absl::StrCat("failureRules[", rule, "] of role ", role.name, " says ",
                      std::string(NameOf(role.failure_rules[rule].action)));
}

std::string DescribeFailure(std::string_view member, const FailureFacts& failure) {
  std::string text =
      absl::StrCat(absl::string_view(member.data(), member.size()),
                   " failed: ", absl::string_view(failure.reason.data(), failure.reason.size()));
  if (failure.exit_code) absl::StrAppend(&text, ", exit code ", *failure.exit_code);
  return text;
}

}  // namespace hetero::api
