#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/labels.h"
#include "operator/children/children.h"
#include "operator/reconcile/effects.h"
#include "operator/reconcile/job_resource.h"
#include "operator/reconcile/json_access.h"
#include "operator/reconcile/ownership.h"
#include "operator/reconcile/pod_set_difference.h"
#include "operator/reconcile/project.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;

// Kueue writes Workloads too; the watch is about to bring what it has written.
constexpr base::Duration kChangedAgain = std::chrono::milliseconds(100);
constexpr base::Duration kGoingAgain = std::chrono::seconds(1);
constexpr base::Duration kAdoptAgain = std::chrono::seconds(5);

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

json Render(const plan::WorkloadClaim& claim, const plan::ObservedJob& job,
            const children::Settings& settings) {
  children::WorkloadSpec workload{.name = claim.name,
                                  .queue = claim.queue,
                                  .priority_class = claim.priority_class,
                                  .priority = claim.priority,
                                  .spec_hash = claim.spec_hash};
  for (const plan::WorkloadClaim::PodSet& set : claim.pod_sets) {
    workload.pod_sets.push_back({&job.job.spec.roles.at(set.role), set.count});
  }
  return children::Workload(job.job, workload, settings);
}

Outcome OfWorkload(Outcome outcome) {
  outcome.of_workload = true;
  return outcome;
}

Outcome CannotAdopt(const std::string& name, const std::string& why) {
  Outcome outcome;
  outcome.create_error = {.message = absl::StrCat("workload ", name, ", which metadata.labels[",
                                                  api::kPrebuiltWorkloadLabel, "] names, ", why)};
  outcome.again_after = kAdoptAgain;
  return OfWorkload(std::move(outcome));
}

// Of the ownerReferences and labels, with those of our own.
json MetadataAfter(const json& existing, const json& own) {
  const json& before = FieldOf(existing, "metadata");
  const json& ours = FieldOf(own, "metadata");
  json owners = ListOf(before, "ownerReferences");
  for (const json& owner : ListOf(ours, "ownerReferences")) owners.push_back(owner);
  return {{"uid", TextOf(before, "uid")},
          {"resourceVersion", TextOf(before, "resourceVersion")},
          {"ownerReferences", std::move(owners)},
          {"labels", FieldOf(ours, "labels")},
          {"annotations", FieldOf(ours, "annotations")}};
}

}  // namespace

Outcome EffectRunner::Run(const plan::CreateWorkload& effect, const plan::ObservedJob& job) {
  return OfWorkload(Create(plan::ChildKind::kWorkload, Render(*effect.claim, job, settings_), job));
}

Outcome EffectRunner::Run(const plan::AdoptWorkload& effect, const plan::ObservedJob& job) {
  const std::string& name = effect.claim->name;
  const kube::ObjectKey key{job.job.metadata.name_space, name};
  const absl::StatusOr<json> existing = client_.Get(kWorkloads, key);
  if (absl::IsNotFound(existing.status())) {
    return CannotAdopt(name, "does not exist; remove the label to have the operator make one");
  }
  if (!existing.ok()) {
    Outcome outcome;
    outcome.status =
        absl::Status(existing.status().code(),
                     absl::StrCat("workload ", name, ": ", existing.status().message()));
    return outcome;
  }
  const json& owner = ControllerOf(*existing);
  const bool ours = IsOwnedBy(*existing, job.job.metadata.uid);
  if (!FieldOf(FieldOf(*existing, "metadata"), "deletionTimestamp").is_null()) {
    Outcome outcome;
    outcome.again_after = kGoingAgain;
    return outcome;
  }
  if (!ours && !owner.is_null()) {
    return CannotAdopt(
        name, absl::StrCat("belongs to ", TextOf(owner, "kind"), " ", TextOf(owner, "name"),
                           "; name one that nobody owns, or remove the label"));
  }
  const std::shared_ptr<const plan::ObservedWorkload> made = ProjectWorkload(*existing);
  if (made->Is("Finished")) {
    return CannotAdopt(name, "is Finished; whoever made it has to make it anew");
  }
  const plan::WorkloadClaim& claim = *effect.claim;
  if (made->queue != claim.queue || made->priority_class != claim.priority_class) {
    return CannotAdopt(name, absl::StrCat("is in queue ", made->queue, " with the priority class '",
                                          made->priority_class, "'; the job's labels name others"));
  }
  const json own = Render(*effect.claim, job, settings_);
  if (const std::string difference = PodSetDifference(*existing, own); !difference.empty()) {
    return CannotAdopt(name, absl::StrCat("is not for the pods of this job: ", difference,
                                          "; whoever made it has to make it anew"));
  }
  return TakeOver(*existing, own, job);
}

Outcome EffectRunner::TakeOver(const json& existing, const json& own,
                               const plan::ObservedJob& job) {
  const std::string name = TextOf(FieldOf(existing, "metadata"), "name");
  json metadata = MetadataAfter(existing, own);
  if (IsOwnedBy(existing, job.job.metadata.uid)) metadata.erase("ownerReferences");
  const absl::StatusOr<json> written =
      client_.Patch(kWorkloads, {job.job.metadata.name_space, name}, kube::PatchType::kMerge,
                    {{"metadata", std::move(metadata)}});
  if (absl::IsAborted(written.status()) || absl::IsNotFound(written.status())) {
    Outcome outcome;
    outcome.again_after = kChangedAgain;
    return outcome;
  }
  if (!written.ok()) return OfWorkload(RefusedCreate("workload " + name, written.status()));
  Outcome outcome;
  outcome.kind = plan::ChildKind::kWorkload;
  outcome.workload = ProjectWorkload(*written);
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
