#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/hetero_training_job.h"

// What a role's failureRules and restartScope say about a process that ended badly: the same for a
// pod and for a process of one machine. Pure.
namespace hetero::api {

struct FailureFacts {
  std::optional<int32_t> exit_code;  // as a container's: 128 + the signal that ended it
  std::string_view reason;           // OOMKilled, Evicted, Error, ...
  bool disruption = false;           // the cluster's doing
};

struct FailureDecision {
  FailureAction action = FailureAction::kRestartPod;
  std::optional<size_t> rule;  // the one that matched; none: restartScope
};

// The first rule that matches, otherwise the role's restartScope.
FailureDecision DecideFailure(const Role& role, const FailureFacts& failure);

// "failureRules[0] of role gpu says FailJob".
std::string DescribeRule(const Role& role, size_t rule);

// "gpu-1 failed: OOMKilled, exit code 137".
std::string DescribeFailure(std::string_view member, const FailureFacts& failure);

}  // namespace hetero::api
