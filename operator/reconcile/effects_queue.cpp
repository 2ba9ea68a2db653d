#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "operator/children/children.h"
#include "operator/reconcile/effects.h"
#include "operator/reconcile/job_resource.h"
#include "operator/reconcile/project.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;

// Kueue writes Workloads too; the watch is about to bring what it has written.
constexpr base::Duration kChangedAgain = std::chrono::milliseconds(100);

json ConditionJson(const plan::WorkloadCondition& condition) {
  return {{"type", condition.type},
          {"status", condition.status},
          {"reason", condition.reason},
          {"message", condition.message},
          {"lastTransitionTime", api::FormatTime(condition.last_transition_time)},
          {"observedGeneration", condition.observed_generation}};
}

// A merge patch knows lists only whole.
json ConditionsAfter(const plan::UpdateWorkload& effect) {
  json conditions = json::array();
  for (const plan::WorkloadCondition& earlier : effect.read->conditions) {
    const bool replaced = std::any_of(effect.conditions.begin(), effect.conditions.end(),
                                      [&](const auto& now) { return now.type == earlier.type; });
    if (!replaced) conditions.push_back(ConditionJson(earlier));
  }
  for (const plan::WorkloadCondition& now : effect.conditions) {
    conditions.push_back(ConditionJson(now));
  }
  return conditions;
}

}  // namespace

Outcome EffectRunner::Run(const plan::CreateWorkload& effect, const plan::ObservedJob& job) {
  const plan::WorkloadClaim& claim = *effect.claim;
  children::WorkloadSpec workload{.name = claim.name,
                                  .queue = claim.queue,
                                  .priority_class = claim.priority_class,
                                  .priority = claim.priority,
                                  .spec_hash = claim.spec_hash};
  for (const plan::WorkloadClaim::PodSet& set : claim.pod_sets) {
    workload.pod_sets.push_back({&job.job.spec.roles.at(set.role), set.count});
  }
  Outcome outcome =
      Create(plan::ChildKind::kWorkload, children::Workload(job.job, workload, settings_), job);
  outcome.of_workload = true;
  return outcome;
}

Outcome EffectRunner::Run(const plan::CreatePodGroup& effect, const plan::ObservedJob& job) {
  std::vector<children::GangRole> roles;
  for (const plan::CreatePodGroup::Role& role : effect.roles) {
    roles.push_back({&job.job.spec.roles.at(role.role), role.count});
  }
  const children::GangApi gang_api = effect.gang.gang_api;
  const json group = children::PodGroup(job.job, effect.gang, roles, settings_);
  Outcome outcome = Create(plan::ChildKind::kPodGroup, PodGroupsOf(gang_api), group, job);
  if (outcome.object == nullptr) return outcome;
  auto created = std::make_shared<plan::ObservedObject>(*outcome.object);
  created->gang_api = gang_api;
  created->min_member = ProjectPodGroup(group, gang_api)->min_member;
  outcome.object = std::move(created);
  return outcome;
}

Outcome EffectRunner::Run(const plan::UpdateWorkload& effect, const plan::ObservedJob& job) {
  const plan::ObservedWorkload& read = *effect.read;
  json status = {{"conditions", ConditionsAfter(effect)}};
  if (effect.release) status["admission"] = nullptr;
  const json patch = {{"metadata", {{"uid", read.uid}, {"resourceVersion", read.resource_version}}},
                      {"status", std::move(status)}};
  const absl::StatusOr<json> written =
      client_.Patch(kWorkloads, {job.job.metadata.name_space, read.name}, kube::PatchType::kMerge,
                    patch, "status");
  Outcome outcome;
  if (absl::IsAborted(written.status()) || absl::IsNotFound(written.status())) {
    outcome.again_after = kChangedAgain;
  } else if (!written.ok()) {
    outcome.status =
        absl::Status(written.status().code(),
                     absl::StrCat("workload ", read.name, ": ", written.status().message()));
  } else {
    outcome.workload = ProjectWorkload(*written);
    outcome.replaced_version = read.resource_version;
  }
  return outcome;
}

}  // namespace hetero::reconcile
