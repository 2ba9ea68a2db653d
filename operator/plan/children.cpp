#include "operator/plan/children.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/reasons.h"
#include "operator/children/names.h"
#include "operator/plan/backoff.h"
#include "operator/plan/conditions.h"
#include "operator/plan/follow.h"
#include "operator/plan/gang.h"
#include "operator/plan/history.h"
#include "operator/plan/workload.h"

namespace hetero::plan {
namespace {

using api::ConditionStatus;
using api::ConditionType;

// What is left open on purpose, so that nobody takes the job for a protected one.
std::string Unprotected(const api::Network& network) {
  const bool tls = network.tls == api::Switch::kEnabled;
  const bool policy = network.network_policy == api::Switch::kEnabled;
  if (tls && policy) return "";
  if (policy) return "network.tls is Disabled: the pods talk to each other in plain text";
  if (tls) {
    return "network.networkPolicy is Disabled: gradients and metrics are open to the whole cluster";
  }
  return "network.tls and network.networkPolicy are Disabled: all ports of the pods are open to "
         "the whole cluster, in plain text";
}

Stage MissingConfig(const Pass& pass) {
  Stage stage;
  if (pass.seen.config_map == nullptr) stage.push_back(CreateTrust{});
  const bool wanted = pass.spec.network.network_policy == api::Switch::kEnabled;
  if (wanted && pass.seen.network_policy == nullptr) {
    stage.push_back(CreateChild{.kind = ChildKind::kNetworkPolicy,
                                .name = children::NetworkPolicyName(pass.metadata)});
  }
  return stage;
}

int64_t UnixNs(base::WallTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

// The head takes only a larger one for a newer process, and the clock may have gone back since the
// last was made, or another operator's was ahead.
int64_t NextIncarnation(const Pass& pass) {
  int64_t next = UnixNs(pass.now);
  // Annotations and a head's words may hold any number.
  const auto after = [&next](int64_t incarnation) {
    if (incarnation < std::numeric_limits<int64_t>::max()) next = std::max(next, incarnation + 1);
  };
  for (const auto& pod : pass.seen.pods) after(pod->incarnation);
  // The account tells by it who is new.
  if (pass.status.cost) after(pass.status.cost->incarnation);
  // Its pod may be gone: members, and who may write the report, go by the newest head they have
  // met.
  if (pass.seen.head) after(pass.seen.head->head_incarnation);
  if (const HeadReport* report = pass.Report(); report != nullptr) {
    for (const auto& [name, member] : report->members) after(member.incarnation);
  }
  return next;
}

// Those that are to be made now, in two stages.
struct Missing {
  std::vector<const Slot*> needed;  // without them the job does not train
  std::vector<const Slot*> beyond;  // CPU workers beyond minReplicas
};

// A running job that is above what one job may have, because it was
// scaled or the limit lowered, keeps what it has and gets its head and trainers back, without which
// it is none: CPU workers are what it goes without.
Missing MissingSlots(Pass& pass) {
  const auto optional = [](const Slot& slot) {
    return slot.role->type == api::RoleType::kCpuWorker;
  };
  const auto taken = std::count_if(pass.slots.begin(), pass.slots.end(), [&](const Slot& slot) {
    return slot.holder != nullptr || !optional(slot);
  });
  int64_t room = pass.settings.max_pods - taken;
  std::map<const api::Role*, int32_t> have;
  for (const Slot& slot : pass.slots) have[slot.role] += slot.holder != nullptr;
  Missing missing;
  for (const Slot& slot : pass.slots) {
    if (slot.holder != nullptr || !MayFill(pass, slot)) continue;
    if (optional(slot) && room-- <= 0) continue;
    if (!MayBeMade(pass, *slot.role, slot.index)) continue;
    const int32_t least = slot.role->min_replicas.value_or(slot.role->replicas);
    const bool needed = !optional(slot) || have[slot.role]++ < least;
    (needed ? missing.needed : missing.beyond).push_back(&slot);
  }
  return missing;
}

// Those without which the job does not train come first and alone: a quota has the room that they
// left when they died for them, and not for a CPU worker that has waited longer.
void CreatePods(Pass& pass, const std::string& head_address) {
  auto origin = std::make_shared<PodOrigin>();
  origin->attempt = pass.status.attempt;
  origin->incarnation = NextIncarnation(pass);
  origin->head_address = head_address;
  origin->job_created = UnixNs(pass.object.created);
  origin->history = pass.status.history;
  origin->attempt_cause = AttemptCause(pass);
  origin->avoided_nodes = AvoidedNodes(pass);
  origin->gang = MembershipOf(pass);
  origin->images = pass.status.images.value_or(api::AttemptImages{});
  using Given = std::pair<const api::Role*, std::shared_ptr<const ObservedWorkload>>;
  std::map<Given, std::shared_ptr<const children::Placement>> placements;
  const auto create = [&](const std::vector<const Slot*>& slots) {
    Stage stage;
    for (const Slot* slot : slots) {
      const Given given(slot->role, WorkloadOf(pass, *slot->role, slot->index));
      auto [placement, added] = placements.try_emplace(given);
      if (added && given.second != nullptr) {
        placement->second = PlacementOf(pass, *given.second, slot->role->name);
      }
      stage.push_back(CreatePod{.role = static_cast<int32_t>(slot->role - pass.spec.roles.data()),
                                .index = slot->index,
                                .origin = origin,
                                .placement = placement->second});
    }
    pass.AddStage(std::move(stage));
  };
  const Missing missing = MissingSlots(pass);
  create(missing.needed);
  create(missing.beyond);
}

std::string DescribeExcess(const Pass& pass) {
  return absl::StrCat("spec.roles: ", pass.slots.size(),
                      " pods are wanted, and this operator makes at most ", pass.settings.max_pods,
                      " for one job; ask for fewer CPU workers, or have its administrator raise "
                      "--max-pods-per-job (jobs.maxPods in the chart)");
}

const char* ReasonOf(CreateError::Kind kind) {
  switch (kind) {
    case CreateError::Kind::kOther:
      return api::reason::kCreateFailed;
    case CreateError::Kind::kQuotaExceeded:
      return api::reason::kQuotaExceeded;
    case CreateError::Kind::kNameConflict:
      return api::reason::kNameConflict;
  }
  return api::reason::kCreateFailed;
}

}  // namespace

void CreateChildren(Pass& pass) {
  // A configuration that was only half understood would be worse than none.
  if (pass.spec_refused && pass.seen.config_map == nullptr) return;
  if (pass.seen.service == nullptr) {
    pass.AddStage(
        {CreateChild{.kind = ChildKind::kService, .name = children::ServiceName(pass.metadata)}});
    return;
  }
  const std::string head_address = HeadJoinAddress(pass);
  const bool config_going = pass.seen.config_map != nullptr && pass.seen.config_map->deleting;
  if (head_address.empty() || config_going) return;
  pass.AddStage(MissingConfig(pass));
  if (!FormGang(pass)) return;
  CreatePods(pass, head_address);
}

void DescribeChildren(Pass& pass) {
  const bool complete = std::all_of(pass.slots.begin(), pass.slots.end(),
                                    [](const Slot& slot) { return slot.pod != nullptr; });
  if (complete) {
    SetCondition(pass, ConditionType::kPodsCreated, ConditionStatus::kTrue,
                 api::reason::kAllCreated, Unprotected(pass.object.job.spec.network));
    // While the Service is away the old address stands, to be compared with the next one.
    if (std::string address = HeadJoinAddress(pass); !address.empty()) {
      pass.status.head_address = std::move(address);
    }
    if (ConditionOf(pass, ConditionType::kRestarting).status == ConditionStatus::kTrue) {
      SetCondition(pass, ConditionType::kRestarting, ConditionStatus::kFalse,
                   api::reason::kCompleted);
    }
  } else if (pass.slots.size() > static_cast<size_t>(std::max(0, pass.settings.max_pods))) {
    SetCondition(pass, ConditionType::kPodsCreated, ConditionStatus::kFalse,
                 api::reason::kTooManyPods, DescribeExcess(pass));
  } else if (pass.seen.create_error) {
    SetCondition(pass, ConditionType::kPodsCreated, ConditionStatus::kFalse,
                 ReasonOf(pass.seen.create_error->kind), pass.seen.create_error->message);
  } else if (std::string missing = MissingGang(pass); !missing.empty()) {
    SetCondition(pass, ConditionType::kPodsCreated, ConditionStatus::kFalse,
                 api::reason::kGangMissing, std::move(missing));
  } else if (ConditionOf(pass, ConditionType::kPodsCreated).reason == api::reason::kGangMissing) {
    SetCondition(pass, ConditionType::kPodsCreated, ConditionStatus::kUnknown,
                 api::reason::kCreatingPods);
  }
}

}  // namespace hetero::plan
