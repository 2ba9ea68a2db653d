// Kueue's part of the model cluster: what its scheduler and its controllers write.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "operator/plan/workload.h"
#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

void Set(ObservedWorkload& workload, WorkloadCondition condition) {
  std::erase_if(workload.conditions, [&condition](const WorkloadCondition& earlier) {
    return earlier.type == condition.type;
  });
  workload.conditions.push_back(std::move(condition));
}

}  // namespace

bool ModelCluster::Do(const CreateWorkload& effect) {
  const WorkloadClaim& claim = *effect.claim;
  calls.push_back("create " + claim.name);
  if (create_error) return false;
  if (workloads.contains(claim.name)) return true;
  auto workload = std::make_shared<ObservedWorkload>();
  workload->name = claim.name;
  workload->uid = "workload-" + std::to_string(next_uid_++);
  workload->owner_uid = job->job.metadata.uid;
  workload->resource_version = std::to_string(++version_);
  workload->generation = 1;
  workload->queue = claim.queue;
  workload->priority_class = claim.priority_class;
  workload->priority = claim.priority;
  workload->spec_hash = claim.spec_hash;
  for (const WorkloadClaim::PodSet& set : claim.pod_sets) {
    workload->pod_sets[job->job.spec.roles.at(set.role).name] = set.count;
  }
  workloads[claim.name] = std::move(workload);
  return true;
}

bool ModelCluster::Do(const AdoptWorkload& effect) {
  calls.push_back("adopt " + effect.claim->name);
  const auto found = prebuilt.find(effect.claim->name);
  if (found == prebuilt.end() || Differs(*found->second, *effect.claim, job->job.spec)) {
    create_error = {.message = "workload " + effect.claim->name + " cannot be taken over"};
    return false;
  }
  auto adopted = std::make_shared<ObservedWorkload>(*found->second);
  adopted->owner_uid = job->job.metadata.uid;
  adopted->resource_version = std::to_string(++version_);
  workloads[adopted->name] = std::move(adopted);
  prebuilt.erase(found);
  create_error.reset();
  return true;
}

bool ModelCluster::Do(const UpdateWorkload& effect) {
  calls.push_back(effect.release
                      ? "release " + effect.read->name
                      : "update " + effect.read->name + " " + effect.conditions.front().type);
  const auto found = workloads.find(effect.read->name);
  if (found == workloads.end()) return false;
  if (found->second->resource_version != effect.read->resource_version) return false;
  auto changed = std::make_shared<ObservedWorkload>(*found->second);
  for (const WorkloadCondition& condition : effect.conditions) Set(*changed, condition);
  if (effect.release) {
    changed->holds_quota = false;
    changed->assignments.clear();
  }
  changed->resource_version = std::to_string(++version_);
  found->second = std::move(changed);
  return true;
}

void ModelCluster::ChangeWorkload(const std::string& name,
                                  const std::function<void(ObservedWorkload&)>& edit) {
  const auto found = workloads.find(name);
  ASSERT_NE(found, workloads.end()) << "no " << name;
  auto changed = std::make_shared<ObservedWorkload>(*found->second);
  edit(*changed);
  changed->resource_version = std::to_string(++version_);
  found->second = std::move(changed);
}

void ModelCluster::Admit(const std::string& workload, const std::string& flavor) {
  ChangeWorkload(workload, [&](ObservedWorkload& admitted) {
    ASSERT_FALSE(admitted.holds_quota);
    admitted.holds_quota = true;
    for (const auto& [name, count] : admitted.pod_sets) {
      admitted.assignments.push_back({.name = name, .flavors = {flavor}});
    }
    if (admitted.Is("Evicted")) {
      Set(admitted, {.type = "Evicted", .status = "False", .reason = "QuotaReserved"});
    }
    Set(admitted, {.type = "QuotaReserved",
                   .status = "True",
                   .reason = "QuotaReserved",
                   .message = "Quota reserved in ClusterQueue all"});
    Set(admitted, {.type = "Admitted", .status = "True", .reason = "Admitted"});
  });
}

void ModelCluster::Evict(const std::string& reason, const std::string& message,
                         const std::string& workload) {
  ChangeWorkload(workload, [&](ObservedWorkload& evicted) {
    Set(evicted, {.type = "Evicted", .status = "True", .reason = reason, .message = message});
  });
}

const ObservedWorkload& ModelCluster::Workload(const std::string& name) const {
  static const ObservedWorkload none;
  const auto found = workloads.find(name);
  EXPECT_NE(found, workloads.end()) << "no Workload " << name;
  return found == workloads.end() ? none : *found->second;
}

std::string ModelCluster::GangState(const std::string& condition) const {
  const WorkloadCondition* found = Gang().Find(condition);
  return found == nullptr ? "absent" : found->status + "/" + found->reason;
}

}  // namespace hetero::plan
