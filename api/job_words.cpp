#include "api/job_words.h"

#include "absl/strings/str_cat.h"
#include "api/labels.h"

namespace hetero::api {

std::string StateWordOf(const JobStatus& status) {
  for (const Condition& condition : status.conditions) {
    if (condition.status == ConditionStatus::kTrue) return std::string(NameOf(condition.type));
  }
  return "Waiting";
}

bool ShowsFigures(const JobStatus& status) {
  if (!status.progress || status.progress->step <= 0) return false;
  return status.Is(ConditionType::kRunning) || status.Is(ConditionType::kSucceeded) ||
         status.Is(ConditionType::kSuspended);
}

std::string RemarkOn(const JobStatus& status, bool deleting, std::string_view manager) {
  if (deleting) return "being deleted";
  if (!manager.empty() && manager != kManagedBySelf) {
    return absl::StrCat("managed by ", std::string(manager));
  }
  return status.observed_generation == 0 ? "not seen by an operator yet" : "";
}

const Condition* TellingOf(const JobStatus& status) {
  for (const Condition& condition : status.conditions) {
    const bool verdict =
        condition.type == ConditionType::kFailed || condition.type == ConditionType::kSucceeded;
    if (status.finished() && !verdict) continue;
    if (!condition.message.empty() && condition.message != "none") return &condition;
  }
  return nullptr;
}

std::string TellingLineOf(const JobStatus& status) {
  const Condition* const telling = TellingOf(status);
  if (telling == nullptr) return "";
  return absl::StrCat(telling->reason, ": ",
                      telling->message.substr(0, telling->message.find('\n')));
}

}  // namespace hetero::api
