#include "operator/plan/restart.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/failure_decision.h"
#include "api/reasons.h"
#include "api/run_limits.h"
#include "operator/plan/backoff.h"
#include "operator/plan/conditions.h"
#include "operator/plan/ending.h"
#include "operator/plan/failure.h"
#include "operator/plan/failure_rules.h"
#include "operator/plan/follow.h"
#include "operator/plan/members.h"
#include "operator/plan/role_counts.h"

namespace hetero::plan {
namespace {

using api::ConditionStatus;
using api::ConditionType;
using api::FailureAction;
using api::RoleType;

constexpr size_t kMaxUncounted = 1024;  // maxItems of the schema

struct Judged {
  Failure failure;
  api::FailureDecision decision;
};

void Remember(Pass& pass, const ObservedPod& pod) {
  auto& uids = pass.status.uncounted;
  if (std::find(uids.begin(), uids.end(), pod.uid) == uids.end()) uids.push_back(pod.uid);
}

// Pods that are gone need no counting any more.
void ForgetGone(Pass& pass) {
  if (pass.status.uncounted.empty()) return;
  std::unordered_set<std::string_view> there;
  for (const auto& pod : pass.seen.pods) there.insert(pod->uid);
  std::erase_if(pass.status.uncounted,
                [&there](const std::string& uid) { return !there.contains(uid); });
}

// The new failures, the first to end first: it is the one that pulled the others down.
std::vector<Judged> NewFailures(Pass& pass) {
  std::vector<Judged> found;
  for (const Slot& slot : pass.slots) {
    if (slot.pod == nullptr || pass.Counted(*slot.pod)) continue;
    std::optional<Failure> failure = FailureOf(pass, slot);
    if (!failure) continue;
    if (pass.seen.settled.contains(slot.pod->uid)) {
      Remember(pass, *slot.pod);  // counted before: it is only to be deleted
      continue;
    }
    const api::FailureDecision decision = Decide(*failure);
    if (decision.action == FailureAction::kIgnore) continue;
    found.push_back({*std::move(failure), decision});
  }
  std::stable_sort(found.begin(), found.end(), [](const Judged& a, const Judged& b) {
    return a.failure.time < b.failure.time;
  });
  if (found.size() + pass.status.uncounted.size() > kMaxUncounted) {
    found.resize(kMaxUncounted - std::min(kMaxUncounted, pass.status.uncounted.size()));
  }
  return found;
}

bool IsTrainer(const Slot& slot) { return slot.role->type == RoleType::kGpuWorker; }

bool StillTraining(const Pass& pass, const Slot& slot, const std::vector<Judged>& failures) {
  if (slot.pod == nullptr || slot.pod->deletion_time || pass.Counted(*slot.pod)) return false;
  const bool failing = std::any_of(failures.begin(), failures.end(), [&slot](const Judged& judged) {
    return judged.failure.slot == &slot;
  });
  // One that ended and is no failure has trained to the end, or failureRules ignore it.
  return !failing && (slot.pod->ended() || HasStarted(pass, slot));
}

// No trainer of the attempt is left that holds the model: all have failed or, once training was
// possible, vanished in whatever way.
bool Collapsed(const Pass& pass, const std::vector<Judged>& failures) {
  const bool registered = pass.before.attempt == pass.status.attempt &&
                          WasTrue(pass, ConditionType::kRegistered) &&
                          WasTrue(pass, ConditionType::kPodsCreated);
  bool any = false;
  for (const Slot& slot : pass.slots) {
    if (!IsTrainer(slot)) continue;
    if (WorksAtHead(pass, slot)) return false;  // whatever is seen of the one before it
    const bool failed = slot.pod != nullptr && slot.pod->failed();
    if (registered ? StillTraining(pass, slot, failures) : !failed) return false;
    any = true;
  }
  return any && (registered || !failures.empty());
}

// A trainer that was paid for is still there: the collapse is the same accident.
bool AlreadyPaid(const Pass& pass) {
  return std::any_of(pass.slots.begin(), pass.slots.end(), [&pass](const Slot& slot) {
    return IsTrainer(slot) && slot.pod != nullptr && pass.Counted(*slot.pod) &&
           !slot.pod->disrupted;
  });
}

bool WithinBudget(Pass& pass, int32_t cost, const std::string& cause) {
  if (cost == 0 || pass.status.restarts + cost <= pass.policy.max_restarts) return true;
  FailJob(pass, api::reason::kMaxRestartsExceeded,
          api::DescribeRestartsExceeded(cause, pass.policy.max_restarts));
  return false;
}

void Announce(Pass& pass, const std::vector<Judged>& failures) {
  for (const Judged& judged : failures) {
    std::string note = judged.failure.Describe();
    if (judged.failure.blameless()) {
      pass.AddEvent(false, api::event::kPodEnded, "Restart", std::move(note));
      continue;
    }
    if (judged.failure.disruption) note += " (disruption, not counted)";
    if (!judged.failure.message.empty()) {
      note += ": " + judged.failure.message.substr(0, judged.failure.message.find('\n'));
    }
    pass.AddEvent(true, api::event::kPodFailed, "Restart", std::move(note));
  }
}

bool FailedByRule(Pass& pass, const std::vector<Judged>& failures) {
  for (const auto& [failure, decision] : failures) {
    if (decision.action != FailureAction::kFailJob) continue;
    FailJob(pass, api::reason::kRuleMatched,
            absl::StrCat(failure.Describe(), "; ",
                         api::DescribeRule(*failure.slot->role, decision.rule.value_or(0))));
    return true;
  }
  return false;
}

void Record(Pass& pass, const std::vector<Judged>& failures, bool once, int32_t cost) {
  pass.status.restarts += cost;
  for (const Judged& judged : failures) {
    Remember(pass, *judged.failure.slot->pod);
    NoteEnd(pass, judged.failure);
    pass.plan.settled.push_back(judged.failure.slot->pod->uid);
    if (judged.failure.disruption || cost == 0) continue;
    ++CountsOf(pass.status, judged.failure.slot->role->name).restarts;
    if (once) cost = 0;
  }
}

const char* GangReason(const std::vector<Judged>& failures, bool collapsed) {
  const bool stopped = std::any_of(failures.begin(), failures.end(), [](const Judged& judged) {
    return judged.failure.kind == Failure::Kind::kStopped;
  });
  if (stopped) return api::reason::kStopped;
  return collapsed ? api::reason::kNoTrainerLeft : api::reason::kPodFailed;
}

}  // namespace

bool RestartGang(Pass& pass, int32_t cost, const std::string& reason, const std::string& message) {
  if (!WithinBudget(pass, cost, message)) return false;
  pass.status.restarts += cost;
  pass.OpenNextAttempt();
  pass.status.head_address.clear();
  const std::string what = absl::StrCat(message, "; attempt ", pass.status.attempt, " begins");
  SetCondition(pass, ConditionType::kRestarting, ConditionStatus::kTrue, reason, what);
  SetCondition(pass, ConditionType::kPodsCreated, ConditionStatus::kFalse,
               api::reason::kRestarting);
  SetCondition(pass, ConditionType::kRegistered, ConditionStatus::kFalse,
               api::reason::kWaitingForPods, "a new attempt begins");
  SetCondition(pass, ConditionType::kRunning, ConditionStatus::kFalse, api::reason::kRestarting);
  pass.AddEvent(true, api::event::kRestarting, "Restart", what);
  return true;
}

void CountFailures(Pass& pass) {
  ForgetGone(pass);
  ForgetOldBackoff(pass);
  CompleteEvidence(pass);
  const std::vector<Judged> failures = NewFailures(pass);
  const bool collapsed = Collapsed(pass, failures);
  if (failures.empty() && !collapsed) return;
  const auto blamed = std::find_if(failures.begin(), failures.end(), [](const Judged& judged) {
    return !judged.failure.blameless();
  });
  if (blamed != failures.end() && !pass.status.first_failure) {
    pass.status.first_failure = Evidence(blamed->failure);
  }
  Announce(pass, failures);
  if (FailedByRule(pass, failures)) return;

  const auto costs = static_cast<int32_t>(
      std::count_if(failures.begin(), failures.end(),
                    [](const Judged& judged) { return !judged.failure.disruption; }));
  const bool gang =
      collapsed || std::any_of(failures.begin(), failures.end(), [](const Judged& judged) {
        return judged.decision.action == FailureAction::kRestartGang;
      });
  const std::string cause =
      failures.empty() ? "no trainer is left" : failures.front().failure.Describe();
  if (!gang) {
    if (WithinBudget(pass, costs, cause)) Record(pass, failures, /*once=*/false, costs);
    return;
  }
  const int32_t cost = costs == 0 || (collapsed && AlreadyPaid(pass)) ? 0 : 1;
  if (!WithinBudget(pass, cost, cause)) return;
  Record(pass, failures, /*once=*/true, cost);
  RestartGang(pass, 0, GangReason(failures, collapsed), cause);
}

void CheckServiceAndTrust(Pass& pass) {
  const bool complete =
      pass.before.attempt == pass.status.attempt && WasTrue(pass, ConditionType::kPodsCreated);
  if (!complete || (pass.spec_refused && pass.seen.config_map == nullptr)) return;
  const std::string address = HeadJoinAddress(pass);
  if (!address.empty() && !pass.before.head_address.empty() &&
      address != pass.before.head_address) {
    RestartGang(pass, 0, api::reason::kHeadAddressChanged,
                absl::StrCat("the Service of the head was replaced: ", pass.before.head_address,
                             " became ", address));
    return;
  }
  const bool trusted = pass.seen.config_map != nullptr && !pass.seen.config_map->deleting;
  if (pass.spec.network.tls == api::Switch::kEnabled && !trusted) {
    RestartGang(pass, 0, api::reason::kTrustLost,
                "the ConfigMap with the job's authority was deleted, so all certificates are "
                "issued anew");
  }
}

}  // namespace hetero::plan
