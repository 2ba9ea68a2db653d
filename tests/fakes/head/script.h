#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"

// What a fake head does: JSON in annotation fake.hetero.dev/script of the job. Every key may be
// left out. Members are named role-index, "gpu-0".
namespace hetero::testing {

inline constexpr char kScriptAnnotation[] = "fake.hetero.dev/script";
inline constexpr char kContinueAnnotation[] = "fake.hetero.dev/continue";

struct Script {
  base::Duration registration_delay{0};                     // registrationMillis: after a pod runs
  std::set<std::string> never_register;                     // neverRegister
  int64_t steps = 10;                                       // steps
  base::Duration step_time{std::chrono::milliseconds(10)};  // stepMillis
  std::optional<int64_t> hold_at;    // holdAtStep: waits there for the annotation `continue`
  std::optional<int64_t> stall_at;   // stallAtStep: no step after it, in any attempt
  std::optional<int64_t> silent_at;  // silentAtStep: streams stay open, nothing is sent any more
  std::optional<int64_t> disconnect_at;  // disconnectAtStep: breaks all streams, once in a job
  std::string lose_member;               // loseMember: falls silent at loseAtStep, once in a job
  int64_t lose_at = 0;                   // loseAtStep
  std::string kill_member;               // killMember: its pod fails at killAtStep, once in a job
  int64_t kill_at = 0;                   // killAtStep
  int kill_exit_code = 1;                // killExitCode
  bool succeeds = true;                  // verdict: "Succeeded" or "Failed"
  std::string message;                   // message: the summary, or what went wrong
  std::string failed_member;             // failedMember, with verdict Failed
  nlohmann::json result;                 // result: fields of status.result
  bool tells_end = true;  // tellEnd: false leaves the verdict to the last words alone
  base::Duration linger{std::chrono::milliseconds(300)};  // lingerMillis: from the end to the exits
  std::map<std::string, int> needed;                      // needed: replicas by CPU role
  std::string checkpoint_problem;                         // checkpointProblem
  nlohmann::json
      findings;  // findings: a list of such as status.findings holds, from the first step
  std::set<std::string> keep_running;  // keepRunning: members whose pods do not exit at the end
};

// `text` may be empty or wrong JSON: then everything is at its default. Keys under
// attempts.<number> replace those above them in that attempt.
Script ParseScript(std::string_view text, int attempt);

}  // namespace hetero::testing
