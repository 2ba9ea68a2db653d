#include "operator/plan/children.h"

#include <algorithm>
#include <string>
#include <utility>

#include "api/reasons.h"
#include "operator/children/children.h"
#include "operator/children/names.h"
#include "operator/plan/conditions.h"
#include "operator/plan/follow.h"
#include "operator/plan/history.h"

namespace hetero::plan {
namespace {

using api::ConditionStatus;
using api::ConditionType;

CreateChild CreateService(const Pass& pass) {
  return {.kind = ChildKind::kService,
          .name = children::ServiceName(pass.metadata),
          .object = children::HeadService(pass.object.job)};
}

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
                                .name = children::NetworkPolicyName(pass.metadata),
                                .object = children::NetworkPolicy(pass.object.job, pass.settings)});
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
  for (const auto& pod : pass.seen.pods) next = std::max(next, pod->incarnation + 1);
  if (const HeadReport* report = pass.Report(); report != nullptr) {
    for (const auto& [name, member] : report->members) {
      next = std::max(next, member.incarnation + 1);
    }
  }
  return next;
}

Stage MissingPods(const Pass& pass, const std::string& head_address) {
  Stage stage;
  const int64_t incarnation = NextIncarnation(pass);
  for (const Slot& slot : pass.slots) {
    if (slot.name_taken) continue;
    children::PodSlot pod;
    pod.role = slot.role;
    pod.index = slot.index;
    pod.attempt = pass.status.attempt;
    pod.incarnation = incarnation;
    pod.head_address = head_address;
    if (slot.role->type == api::RoleType::kHead) {
      pod.job_created = UnixNs(pass.object.created);
      pod.history = pass.status.history;
      pod.attempt_cause = AttemptCause(pass);
    }
    stage.push_back(CreateChild{.kind = ChildKind::kPod,
                                .name = slot.name,
                                .object = children::Pod(pass.object.job, pod, pass.settings)});
  }
  return stage;
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
  if (pass.seen.service == nullptr) {
    pass.AddStage({CreateService(pass)});
    return;
  }
  const std::string head_address = HeadJoinAddress(pass);
  const bool config_going = pass.seen.config_map != nullptr && pass.seen.config_map->deleting;
  if (head_address.empty() || config_going) return;
  pass.AddStage(MissingConfig(pass));
  pass.AddStage(MissingPods(pass, head_address));
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
  } else if (pass.seen.create_error) {
    SetCondition(pass, ConditionType::kPodsCreated, ConditionStatus::kFalse,
                 ReasonOf(pass.seen.create_error->kind), pass.seen.create_error->message);
  }
}

}  // namespace hetero::plan
