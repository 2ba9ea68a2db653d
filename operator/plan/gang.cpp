#include "operator/plan/gang.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operator/children/names.h"
#include "operator/plan/workload.h"

namespace hetero::plan {
namespace {

using api::GangScheduler;
using children::GangApi;
using GroupPtr = std::shared_ptr<const ObservedObject>;

GangScheduler SchedulerOf(const Pass& pass) {
  return pass.spec.scheduling ? pass.spec.scheduling->gang : GangScheduler::kNone;
}

std::string GroupName(const Pass& pass) {
  return children::PodGroupName(pass.metadata, pass.status.attempt);
}

// Of the attempt; null: there is none.
GroupPtr CurrentGroup(const Pass& pass) {
  for (const GroupPtr& group : pass.seen.pod_groups) {
    if (group->name == GroupName(pass)) return group;
  }
  return nullptr;
}

CreatePodGroup Gang(const Pass& pass, GangApi gang_api) {
  CreatePodGroup create{.gang = {.gang_api = gang_api, .group = GroupName(pass)}};
  for (size_t i = 0; i < pass.spec.roles.size(); ++i) {
    const api::Role& role = pass.spec.roles[i];
    const bool scales = role.type == api::RoleType::kCpuWorker;
    const int32_t least = role.min_replicas.value_or(role.replicas);
    const int32_t count = scales ? std::min(role.replicas, least) : role.replicas;
    if (count > 0) create.roles.push_back({static_cast<int32_t>(i), count});
  }
  return create;
}

int32_t MembersOf(const CreatePodGroup& gang) {
  int32_t members = 0;
  for (const CreatePodGroup::Role& role : gang.roles) members += role.count;
  return members;
}

// Deleted, it stays until no pod of it runs or waits (KEP-5832).
bool IsHeldByItsPods(GangApi gang_api) {
  return gang_api == GangApi::kNativeAlpha || gang_api == GangApi::kNativeBeta;
}

bool AllPlaced(const Pass& pass) {
  return std::all_of(pass.slots.begin(), pass.slots.end(), [](const Slot& slot) {
    return slot.pod != nullptr && !slot.pod->node.empty();
  });
}

DeleteChild Deletion(const ObservedObject& group) {
  return {.kind = ChildKind::kPodGroup,
          .name = group.name,
          .uid = group.uid,
          .gang_api = group.gang_api};
}

// Pods of earlier attempts may still be there, and hold places that the scheduler counts.
void DeleteSpentGroups(Pass& pass) {
  if (pass.seen.pod_groups.empty()) return;
  std::set<int32_t> attempts = {pass.status.attempt};
  for (const auto& pod : pass.seen.pods) attempts.insert(pod->attempt);
  std::set<std::string> in_use;
  for (const int32_t attempt : attempts) {
    in_use.insert(children::PodGroupName(pass.metadata, attempt));
  }
  Stage stage;
  for (const GroupPtr& group : pass.seen.pod_groups) {
    if (!group->deleting && !in_use.contains(group->name)) stage.push_back(Deletion(*group));
  }
  pass.AddStage(std::move(stage));
}

// What a cluster needs to serve it.
const char* Remedy(GangScheduler scheduler) {
  switch (scheduler) {
    case GangScheduler::kNone:
      break;
    case GangScheduler::kVolcano:
      return "scheduling.volcano.sh/v1beta1; install Volcano";
    case GangScheduler::kCoscheduling:
      return "scheduling.x-k8s.io/v1alpha1; install the scheduler-plugins' definition PodGroup and "
             "their scheduler";
    case GangScheduler::kNative:
      return "scheduling.k8s.io/v1beta1 or v1alpha2, nor Workload of v1alpha1; switch on "
             "Kubernetes' feature gates GenericWorkload and GangScheduling and one of these "
             "versions (1.35 or newer)";
  }
  return "";
}

}  // namespace

std::optional<children::GangMembership> MembershipOf(const Pass& pass) {
  if (SchedulerOf(pass) == GangScheduler::kNone) return std::nullopt;
  const GroupPtr group = CurrentGroup(pass);
  const std::optional<GangApi> gang_api =
      group != nullptr ? std::optional(group->gang_api) : pass.seen.gang.served;
  if (!gang_api) return std::nullopt;
  return children::GangMembership{.gang_api = *gang_api, .group = GroupName(pass)};
}

bool FormGang(Pass& pass) {
  DeleteSpentGroups(pass);
  if (SchedulerOf(pass) == GangScheduler::kNone) return true;
  if (const GroupPtr group = CurrentGroup(pass); group != nullptr) {
    const bool fits = group->min_member == MembersOf(Gang(pass, group->gang_api));
    const bool replaced = !fits && !IsHeldByItsPods(group->gang_api) && !AllPlaced(pass);
    // Until it is gone it counts, and it may be held for as long as a pod of it runs.
    if (group->deleting || !replaced) return true;
    pass.AddStage({Deletion(*group)});
    return false;
  }
  if (!pass.seen.gang.served) {
    if (!AllPlaced(pass)) pass.WakeAt(pass.now + kLookAgain);
    return false;
  }
  pass.AddStage({Gang(pass, *pass.seen.gang.served)});
  return true;
}

std::string MissingGang(const Pass& pass) {
  const GangScheduler scheduler = SchedulerOf(pass);
  if (scheduler == GangScheduler::kNone || pass.seen.gang.served || CurrentGroup(pass) != nullptr) {
    return "";
  }
  return absl::StrCat("spec.scheduling.gang: the cluster serves the operator no PodGroup of ",
                      Remedy(scheduler),
                      ", give the operator its rights (scheduling.gangs in the chart), or suspend "
                      "the job and remove the field");
}

void DeletePodGroups(Pass& pass) {
  Stage stage;
  for (const GroupPtr& group : pass.seen.pod_groups) {
    if (!group->deleting) stage.push_back(Deletion(*group));
  }
  pass.AddStage(std::move(stage));
}

}  // namespace hetero::plan
