#include "operator/plan/spec_check.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/reasons.h"
#include "api/unsupported_fields.h"
#include "operator/children/children.h"
#include "operator/plan/ending.h"

namespace hetero::plan {

void CheckSpec(Pass& pass) {
  std::vector<std::string> errors;
  for (const api::FieldError& error : pass.object.errors) {
    errors.push_back(absl::StrCat(error.path, ": ", error.reason));
  }
  const bool seen_before = pass.before.observed_generation == pass.object.generation;
  if (errors.empty() && !seen_before) {
    for (const api::FieldError& error : api::UnsupportedFields(pass.object.job)) {
      errors.push_back(absl::StrCat(error.path, ": ", error.reason));
    }
    for (const children::TemplateError& error : children::CheckTemplates(pass.object.job)) {
      errors.push_back(absl::StrCat(error.path, ": ", error.reason));
    }
  }
  if (!errors.empty()) FailJob(pass, api::reason::kInvalidSpec, absl::StrJoin(errors, "; "));
}

}  // namespace hetero::plan
