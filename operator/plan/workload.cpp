#include "operator/plan/workload.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/labels.h"
#include "operator/children/names.h"

namespace hetero::plan {
namespace {

std::string LabelOf(const Pass& pass, const char* name) {
  const auto found = pass.metadata.labels.find(name);
  return found == pass.metadata.labels.end() ? "" : found->second;
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

std::shared_ptr<const ObservedWorkload> GangWorkload(const Pass& pass) {
  const std::string name = children::GangWorkloadName(pass.metadata);
  for (const auto& workload : pass.seen.workloads) {
    if (workload->name == name) return workload;
  }
  return nullptr;
}

absl::StatusOr<WorkloadClaim> GangClaim(const Pass& pass) {
  WorkloadClaim claim;
  claim.name = children::GangWorkloadName(pass.metadata);
  claim.queue = QueueOf(pass);
  claim.priority_class = LabelOf(pass, api::kQueuePriorityLabel);
  if (const std::string& name = claim.priority_class; !name.empty()) {
    const auto priority = pass.seen.queues.priorities.find(name);
    if (priority == pass.seen.queues.priorities.end()) {
      return absl::FailedPreconditionError(
          absl::StrCat("metadata.labels[", api::kQueuePriorityLabel,
                       "]: the cluster has no WorkloadPriorityClass ", name,
                       "; make one, or set the label to one that there is"));
    }
    claim.priority = priority->second;
  }
  for (size_t i = 0; i < pass.spec.roles.size(); ++i) {
    const int32_t count = pass.Wanted(pass.spec.roles[i]);
    if (count > 0) claim.pod_sets.push_back({static_cast<int32_t>(i), count});
  }
  return claim;
}

bool Differs(const ObservedWorkload& workload, const WorkloadClaim& claim, const api::Spec& spec) {
  if (workload.queue != claim.queue || workload.priority_class != claim.priority_class) return true;
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
