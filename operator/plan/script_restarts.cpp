#include "operator/plan/script_restarts.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "api/reasons.h"
#include "api/run_limits.h"
#include "operator/plan/ending.h"

namespace hetero::plan {
namespace {

// Its head's words, but for the member and the output that follows: "...: exit code 1".
std::string CauseOf(const HeadReport& report) {
  if (!report.first_failure) return "a script failed";
  const std::string& message = report.first_failure->message;
  return message.substr(0, message.find('\n'));
}

}  // namespace

ScriptRestarts ChargeScriptRestarts(Pass& pass) {
  const HeadReport* report = pass.Report();
  const int32_t counted = pass.status.script_restarts.value_or(0);
  if (report == nullptr || report->script_restarts <= counted) return ScriptRestarts::kNone;
  const int32_t fresh = report->script_restarts - counted;
  const int32_t room = std::max(0, pass.policy.max_restarts - pass.status.restarts);
  pass.status.script_restarts = report->script_restarts;
  pass.status.restarts += std::min(fresh, room);
  if (!pass.status.first_failure) pass.status.first_failure = report->first_failure;
  return fresh <= room ? ScriptRestarts::kAllowed : ScriptRestarts::kTooMany;
}

void CountScriptRestarts(Pass& pass) {
  const ScriptRestarts found = ChargeScriptRestarts(pass);
  if (found == ScriptRestarts::kNone) return;
  const std::string cause = CauseOf(*pass.Report());
  if (found == ScriptRestarts::kTooMany) {
    FailJob(pass, api::reason::kMaxRestartsExceeded,
            api::DescribeRestartsExceeded(cause, pass.policy.max_restarts));
    return;
  }
  pass.AddEvent(true, api::event::kScriptFailed, "Restart",
                absl::StrCat(cause, "; all scripts begin again, restart ", pass.status.restarts,
                             " of ", pass.policy.max_restarts));
}

}  // namespace hetero::plan
