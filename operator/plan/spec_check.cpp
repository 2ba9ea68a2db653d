#include "operator/plan/spec_check.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/reasons.h"
#include "operator/plan/conditions.h"
#include "operator/plan/ending.h"
#include "operator/plan/refusals.h"
#include "operator/plan/suspend.h"

namespace hetero::plan {
namespace {

using api::ConditionStatus;
using api::ConditionType;

// Once for each message.
void Tell(Pass& pass, const char* reason, const std::string& message) {
  const api::Condition& told = ConditionOf(pass, ConditionType::kSpecIgnored);
  const bool news = told.status != ConditionStatus::kTrue || told.message != message;
  SetCondition(pass, ConditionType::kSpecIgnored, ConditionStatus::kTrue, reason, message);
  if (news) pass.AddEvent(true, api::event::kSpecIgnored, "Read", message);
}

void Accept(Pass& pass) {
  const std::vector<std::string>& unknown = pass.object.unknown_fields;
  if (!unknown.empty()) {
    return Tell(pass, api::reason::kUnknownFields,
                absl::StrCat(absl::StrJoin(unknown, ", "),
                             ": this operator does not know the field and goes on without it; "
                             "upgrade the operator, or remove the field"));
  }
  SetCondition(pass, ConditionType::kSpecIgnored, ConditionStatus::kFalse, api::reason::kFollowed);
}

}  // namespace

void CheckSpec(Pass& pass) {
  std::vector<std::string> errors;
  for (const api::FieldError& error : pass.object.errors) {
    errors.push_back(absl::StrCat(error.path, ": ", error.reason));
  }
  const bool halted = pass.policy.suspend || WasSuspended(pass);
  const bool begun = pass.before.attempt > 0;
  if (errors.empty() && (halted || !begun)) errors = Refusals(pass);
  if (errors.empty()) return Accept(pass);
  const std::string message = absl::StrJoin(errors, "; ");
  if (!begun && !halted) return FailJob(pass, api::reason::kInvalidSpec, message);

  pass.spec_refused = true;
  Tell(pass, api::reason::kInvalidSpec,
       absl::StrCat(message, halted ? "; the job stays suspended until the spec is mended"
                                    : "; the job goes on as it was begun"));
  // Not even who belongs to the job is certain.
  if (!pass.object.pods_known) pass.held = true;
}

void HoldRefusedSpec(Pass& pass) {
  if (pass.spec_refused && pass.object.generation != pass.before.observed_generation) {
    pass.held = true;
  }
}

}  // namespace hetero::plan
