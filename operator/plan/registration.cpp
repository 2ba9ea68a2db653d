#include "operator/plan/registration.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/reasons.h"
#include "operator/plan/backoff.h"
#include "operator/plan/conditions.h"
#include "operator/plan/members.h"

namespace hetero::plan {
namespace {

using api::ConditionStatus;
using api::ConditionType;
using Cause = MissingMember::Cause;

constexpr size_t kMaxListed = 5;
constexpr size_t kMaxWhy = 300;  // characters of the scheduler's or the kubelet's words

bool PullFailed(const std::string& reason) {
  return reason == "ErrImagePull" || reason == "ImagePullBackOff" || reason == "InvalidImageName" ||
         reason == "ErrImageNeverPull" || reason == "RegistryUnavailable";
}

// Whether the head counts the member among its own.
bool HasRegistered(const Pass& pass, const Slot& slot) {
  const HeadReport* report = pass.Report();
  if (report == nullptr) return false;
  if (slot.role->type == api::RoleType::kHead) return report->connected;
  const HeadReport::Member* member = MemberOf(pass, slot);
  return member != nullptr && member->connected && !member->lost &&
         (slot.pod == nullptr || member->incarnation >= slot.pod->incarnation);
}

// `refusal_told`: whether a member before it has said why the API refuses pods.
MissingMember Explain(const Pass& pass, const Slot& slot, bool& refusal_told) {
  const auto because = [&slot](Cause cause, const std::string& why) {
    return MissingMember{cause, absl::StrCat(slot.name, ": ", why)};
  };
  if (slot.pod == nullptr) {
    if (slot.holder != nullptr) {
      return because(Cause::kOther, slot.holder->forced
                                        ? "waiting for the old pod, " + slot.holder->waiting_message
                                        : "waiting for the old pod to be gone");
    }
    if (const std::string wait = DescribeBackoff(pass, slot); !wait.empty()) {
      return because(Cause::kOther, wait);
    }
    if (pass.seen.create_error) {
      if (std::exchange(refusal_told, true)) return because(Cause::kOther, "not created");
      return because(Cause::kOther,
                     "not created: " + pass.seen.create_error->message.substr(0, kMaxWhy));
    }
    return because(Cause::kOther, "not created yet");
  }
  const ObservedPod& pod = *slot.pod;
  if (pod.deletion_time) {
    return because(Cause::kOther, pod.forced ? pod.waiting_message : "being deleted");
  }
  if (pod.ended()) {
    return because(Cause::kOther,
                   absl::StrCat("ended: ", pod.reason, ", exit code ", pod.exit_code));
  }
  if (!pod.waiting_reason.empty()) {
    const Cause cause = pod.waiting_reason == "Unschedulable" ? Cause::kUnschedulable
                        : PullFailed(pod.waiting_reason)      ? Cause::kPullFailed
                                                              : Cause::kOther;
    std::string why = pod.waiting_reason;
    if (!pod.waiting_message.empty()) {
      absl::StrAppend(&why, ": ", pod.waiting_message.substr(0, kMaxWhy));
    }
    return because(cause, why);
  }
  if (!HasStarted(pass, slot)) {
    return because(Cause::kOther,
                   pod.node.empty() ? "not scheduled yet" : "not started yet on node " + pod.node);
  }
  return because(Cause::kNotRegistered, slot.role->type == api::RoleType::kHead
                                            ? "runs, but its status cannot be read"
                                            : "runs, but has not registered with the head");
}

// Whether all that training needs has registered.
bool Complete(const Pass& pass) {
  const HeadReport* report = pass.Report();
  if (report == nullptr) return false;
  if (report->state == HeadReport::State::kRunning) return true;
  if (!report->connected) return false;
  return std::all_of(
      pass.spec.roles.begin(), pass.spec.roles.end(), [&pass, report](const auto& role) {
        if (role.type == api::RoleType::kHead) return true;
        const int32_t required =
            role.type == api::RoleType::kCpuWorker
                ? std::min(role.min_replicas.value_or(role.replicas), pass.Wanted(role))
                : role.replicas;
        const auto members = report->roles.find(role.name);
        return required == 0 ||
               (members != report->roles.end() && members->second.registered >= required);
      });
}

const char* ReasonFor(const std::vector<MissingMember>& missing) {
  if (missing.empty()) return api::reason::kWaitingForPods;
  switch (missing.front().cause) {
    case Cause::kPullFailed:
      return api::reason::kImagePullFailed;
    case Cause::kUnschedulable:
      return api::reason::kUnschedulable;
    case Cause::kOther:
    case Cause::kNotRegistered:
      return api::reason::kWaitingForPods;
  }
  return api::reason::kWaitingForPods;
}

}  // namespace

std::vector<MissingMember> MissingMembers(const Pass& pass) {
  std::vector<MissingMember> missing;
  bool refusal_told = false;
  for (const Slot& slot : pass.slots) {
    if (HasRegistered(pass, slot)) continue;
    missing.push_back(Explain(pass, slot, refusal_told));
  }
  std::stable_sort(missing.begin(), missing.end(),
                   [](const auto& a, const auto& b) { return a.cause < b.cause; });
  return missing;
}

std::string ListMissing(const std::vector<MissingMember>& missing) {
  if (missing.empty()) return "none";
  std::string text;
  for (size_t i = 0; i < std::min(missing.size(), kMaxListed); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "; ", missing[i].text);
  }
  if (missing.size() > kMaxListed) {
    absl::StrAppend(&text, "; and ", missing.size() - kMaxListed, " more");
  }
  return text;
}

void DescribeRegistration(Pass& pass) {
  const api::Condition& registered = ConditionOf(pass, ConditionType::kRegistered);
  if (registered.status == ConditionStatus::kTrue) return;
  if (Complete(pass)) {
    SetCondition(pass, ConditionType::kRegistered, ConditionStatus::kTrue,
                 api::reason::kAllRegistered);
    return;
  }
  // Before the pods stand there is nothing to say that would be worth a write.
  if (ConditionOf(pass, ConditionType::kPodsCreated).status == ConditionStatus::kUnknown) return;
  const std::vector<MissingMember> missing = MissingMembers(pass);
  SetCondition(pass, ConditionType::kRegistered, ConditionStatus::kFalse, ReasonFor(missing),
               ListMissing(missing));
}

}  // namespace hetero::plan
