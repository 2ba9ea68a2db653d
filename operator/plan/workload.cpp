#include "operator/plan/workload.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/labels.h"
#include "api/reasons.h"
#include "api/spec_hash.h"
#include "operator/children/names.h"
#include "operator/plan/autoscale.h"

namespace hetero::plan {
namespace {

std::string LabelOf(const Pass& pass, const char* name) {
  const auto found = pass.metadata.labels.find(name);
  return found == pass.metadata.labels.end() ? "" : found->second;
}

std::string GangName(const Pass& pass) {
  const std::string prebuilt = LabelOf(pass, api::kPrebuiltWorkloadLabel);
  return prebuilt.empty() ? children::GangWorkloadName(pass.metadata) : prebuilt;
}

std::shared_ptr<const ObservedWorkload> Named(const Pass& pass, const std::string& name) {
  for (const auto& workload : pass.seen.workloads) {
    if (workload->name == name) return workload;
  }
  return nullptr;
}

absl::StatusOr<int32_t> PriorityOf(const Pass& pass, const std::string& where,
                                   const std::string& name) {
  if (name.empty()) return 0;
  const auto priority = pass.seen.queues.priorities.find(name);
  if (priority != pass.seen.queues.priorities.end()) return priority->second;
  return absl::FailedPreconditionError(absl::StrCat(where,
                                                    ": the cluster has no WorkloadPriorityClass ",
                                                    name, "; make one, or name one that there is"));
}

// Replicas that a role cannot do without, of those that it is to have.
int32_t CountInGang(const Pass& pass, const api::Role& role) {
  const int32_t wanted = WantedReplicas(pass.spec, api::JobStatus(), role);  // to begin with
  const bool elastic =
      pass.spec.scheduling && !pass.spec.scheduling->elastic_priority_class.empty();
  if (!elastic || role.type != api::RoleType::kCpuWorker) return wanted;
  return std::min(wanted, role.min_replicas.value_or(role.replicas));
}

void Add(const PodSetUpdate& update, children::Placement& placement) {
  placement.labels.insert(update.labels.begin(), update.labels.end());
  placement.annotations.insert(update.annotations.begin(), update.annotations.end());
  placement.node_selector.insert(update.node_selector.begin(), update.node_selector.end());
  for (const std::string& toleration : update.tolerations) {
    auto& all = placement.tolerations;
    if (std::find(all.begin(), all.end(), toleration) == all.end()) all.push_back(toleration);
  }
}

}  // namespace

std::string QueueOf(const Pass& pass) { return LabelOf(pass, api::kQueueLabel); }

std::string PrebuiltWorkloadOf(const Pass& pass) {
  return LabelOf(pass, api::kPrebuiltWorkloadLabel);
}

std::shared_ptr<const ObservedWorkload> GangWorkload(const Pass& pass) {
  return Named(pass, GangName(pass));
}

std::shared_ptr<const ObservedWorkload> ElasticWorkload(const Pass& pass, const std::string& role,
                                                        int32_t index) {
  return Named(pass, children::ElasticWorkloadName(pass.metadata, role, index));
}

std::shared_ptr<const ObservedWorkload> WorkloadOf(const Pass& pass, const api::Role& role,
                                                   int32_t index) {
  auto gang = GangWorkload(pass);
  if (gang == nullptr || index < gang->CountOf(role.name)) return gang;
  return ElasticWorkload(pass, role.name, index);
}

bool NeedsAdmission(const Pass& pass) {
  const api::Condition* queued = pass.before.Find(api::ConditionType::kQueued);
  const bool begun = pass.before.attempt > 0;
  if (begun && (queued == nullptr || queued->reason == api::reason::kNotQueued)) return false;
  return !QueueOf(pass).empty() || GangWorkload(pass) != nullptr;
}

bool HasRoom(const Pass& pass, const api::Role& role, int32_t index, bool has_pod) {
  const auto gang = GangWorkload(pass);
  if (gang == nullptr) {
    return has_pod || !NeedsAdmission(pass) || index < CountInGang(pass, role);
  }
  if (index < gang->CountOf(role.name)) return true;
  const auto own = ElasticWorkload(pass, role.name, index);
  return own != nullptr && own->admitted();
}

bool MayBeMade(Pass& pass, const api::Role& role, int32_t index) {
  if (!NeedsAdmission(pass)) return true;
  const auto workload = WorkloadOf(pass, role, index);
  if (workload != nullptr && UnknownFlavors(pass, *workload).empty()) return true;
  pass.WakeAt(pass.now + kLookAgain);
  return false;
}

absl::StatusOr<WorkloadClaim> GangClaim(const Pass& pass) {
  WorkloadClaim claim;
  claim.name = GangName(pass);
  claim.spec_hash = api::SpecHash(pass.spec);
  claim.queue = QueueOf(pass);
  claim.priority_class = LabelOf(pass, api::kQueuePriorityLabel);
  if (PrebuiltWorkloadOf(pass).empty()) {  // else whoever made it has given it one
    const absl::StatusOr<int32_t> priority =
        PriorityOf(pass, absl::StrCat("metadata.labels[", api::kQueuePriorityLabel, "]"),
                   claim.priority_class);
    if (!priority.ok()) return priority.status();
    claim.priority = *priority;
  }
  for (size_t i = 0; i < pass.spec.roles.size(); ++i) {
    const int32_t count = CountInGang(pass, pass.spec.roles[i]);
    if (count > 0) claim.pod_sets.push_back({static_cast<int32_t>(i), count});
  }
  return claim;
}

absl::StatusOr<WorkloadClaim> ElasticClaim(const Pass& pass, int32_t role, int32_t index) {
  constexpr char kWhere[] = "spec.scheduling.elasticPriorityClass";
  const auto gang = GangWorkload(pass);
  WorkloadClaim claim;
  claim.name = children::ElasticWorkloadName(pass.metadata, pass.spec.roles.at(role).name, index);
  claim.queue = gang == nullptr ? QueueOf(pass) : gang->queue;
  claim.spec_hash = api::SpecHash(pass.spec);
  claim.priority_class = pass.spec.scheduling ? pass.spec.scheduling->elastic_priority_class : "";
  const absl::StatusOr<int32_t> priority = PriorityOf(pass, kWhere, claim.priority_class);
  if (!priority.ok()) return priority.status();
  const int32_t gangs = gang == nullptr ? 0 : gang->priority;
  if (*priority >= gangs) {
    return absl::FailedPreconditionError(
        absl::StrCat(kWhere, ": ", claim.priority_class, " has priority ", *priority,
                     ", which is not below the job's own (", gangs,
                     "): there are no CPU workers beyond minReplicas; name a class of less"));
  }
  claim.priority = *priority;
  claim.pod_sets.push_back({role, 1});
  return claim;
}

bool Differs(const ObservedWorkload& workload, const WorkloadClaim& claim, const api::Spec& spec) {
  if (workload.queue != claim.queue || workload.priority_class != claim.priority_class) return true;
  if (workload.spec_hash != claim.spec_hash && api::IsComparableSpecHash(workload.spec_hash)) {
    return true;
  }
  std::map<std::string, int32_t> pod_sets;
  for (const WorkloadClaim::PodSet& set : claim.pod_sets) {
    pod_sets[spec.roles.at(set.role).name] = set.count;
  }
  return workload.pod_sets != pod_sets;
}

std::shared_ptr<const children::Placement> PlacementOf(const Pass& pass,
                                                       const ObservedWorkload& workload,
                                                       const std::string& role) {
  const auto assigned =
      std::find_if(workload.assignments.begin(), workload.assignments.end(),
                   [&role](const PodSetAssignment& candidate) { return candidate.name == role; });
  if (assigned == workload.assignments.end()) return nullptr;
  auto placement = std::make_shared<children::Placement>();
  placement->workload = workload.name;
  placement->pod_set = role;
  placement->gated = assigned->topology;
  for (const std::string& name : assigned->flavors) {
    const auto flavor = pass.seen.queues.flavors.find(name);
    if (flavor == pass.seen.queues.flavors.end()) continue;
    Add({.node_selector = flavor->second.node_labels, .tolerations = flavor->second.tolerations},
        *placement);
  }
  for (const AdmissionCheck& check : workload.checks) {
    for (const PodSetUpdate& update : check.updates) {
      if (update.name == role) Add(update, *placement);
    }
  }
  return placement;
}

std::vector<std::string> UnknownFlavors(const Pass& pass, const ObservedWorkload& workload) {
  std::vector<std::string> unknown;
  for (const PodSetAssignment& assigned : workload.assignments) {
    for (const std::string& name : assigned.flavors) {
      if (pass.seen.queues.flavors.contains(name)) continue;
      if (std::find(unknown.begin(), unknown.end(), name) == unknown.end()) unknown.push_back(name);
    }
  }
  return unknown;
}

}  // namespace hetero::plan
