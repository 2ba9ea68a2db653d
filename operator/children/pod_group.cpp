#include "operator/children/pod_group.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json_access.h"
#include "operator/children/children.h"
#include "operator/children/object_metadata.h"
#include "operator/children/resource_sum.h"
#include "operator/children/template_json.h"

namespace hetero::children {
namespace {

using nlohmann::json;

constexpr char kVolcanoScheduler[] = "volcano";
constexpr char kVolcanoGroup[] = "scheduling.k8s.io/group-name";
// As the Helm chart of scheduler-plugins has it.
constexpr char kCoschedulingScheduler[] = "scheduler-plugins-scheduler";
constexpr char kCoschedulingGroup[] = "scheduling.x-k8s.io/pod-group";
// How long members that have a place keep it for the others: its own default.
constexpr int kCoschedulingWait = 60;
// Of the one group in a Workload.
constexpr char kPodGroupName[] = "gang";

// That of all pods; empty: they differ, or name none.
std::string CommonPriorityClass(const std::vector<json>& pods) {
  std::string common;
  for (size_t i = 0; i < pods.size(); ++i) {
    const std::string own = base::TextOf(pods[i]["spec"], "priorityClassName");
    if (i > 0 && own != common) return "";
    common = own;
  }
  return common;
}

json MinResources(const std::vector<GangRole>& roles, const std::vector<json>& pods) {
  ResourceSum sum;
  for (size_t i = 0; i < roles.size(); ++i) sum.AddPods(pods[i]["spec"], roles[i].count);
  return sum.ToJson();
}

json VolcanoSpec(const api::HeteroTrainingJob& job, const std::vector<json>& pods, json spec) {
  const std::string queue = job.spec.scheduling ? job.spec.scheduling->queue : "";
  if (!queue.empty()) spec["queue"] = queue;
  const std::string priority_class = CommonPriorityClass(pods);
  if (!priority_class.empty()) spec["priorityClassName"] = priority_class;
  return spec;
}

json Spec(const api::HeteroTrainingJob& job, GangApi gang_api, const std::vector<GangRole>& roles,
          const Settings& settings) {
  int members = 0;
  std::vector<json> pods;
  for (const GangRole& role : roles) {
    members += role.count;
    pods.push_back(Pod(job, {.role = role.role}, settings));
  }
  const json policy = {{"gang", {{"minCount", members}}}};
  switch (gang_api) {
    case GangApi::kVolcano:
      return VolcanoSpec(job, pods,
                         {{"minMember", members}, {"minResources", MinResources(roles, pods)}});
    case GangApi::kCoscheduling:
      return {{"minMember", members},
              {"minResources", MinResources(roles, pods)},
              {"scheduleTimeoutSeconds", kCoschedulingWait}};
    case GangApi::kNativeWorkload:
      return {{"podGroups", {{{"name", kPodGroupName}, {"policy", policy}}}}};
    case GangApi::kNativeAlpha:
    case GangApi::kNativeBeta:
      return {{"schedulingPolicy", policy}};
  }
  return {};
}

}  // namespace

const char* NameOf(api::GangScheduler scheduler) {
  switch (scheduler) {
    case api::GangScheduler::kNone:
      return "None";
    case api::GangScheduler::kVolcano:
      return "Volcano";
    case api::GangScheduler::kCoscheduling:
      return "Coscheduling";
    case api::GangScheduler::kNative:
      return "Native";
  }
  return "";
}

std::vector<GangApi> GangApisOf(api::GangScheduler scheduler) {
  switch (scheduler) {
    case api::GangScheduler::kNone:
      return {};
    case api::GangScheduler::kVolcano:
      return {GangApi::kVolcano};
    case api::GangScheduler::kCoscheduling:
      return {GangApi::kCoscheduling};
    case api::GangScheduler::kNative:
      return {GangApi::kNativeBeta, GangApi::kNativeAlpha, GangApi::kNativeWorkload};
  }
  return {};
}

GangResource ResourceOf(GangApi gang_api) {
  switch (gang_api) {
    case GangApi::kVolcano:
      return {"scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup"};
    case GangApi::kCoscheduling:
      return {"scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"};
    case GangApi::kNativeWorkload:
      return {"scheduling.k8s.io", "v1alpha1", "workloads", "Workload"};
    case GangApi::kNativeAlpha:
      return {"scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup"};
    case GangApi::kNativeBeta:
      return {"scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup"};
  }
  return {};
}

json PodGroup(const api::HeteroTrainingJob& job, const GangMembership& gang,
              const std::vector<GangRole>& roles, const Settings& settings) {
  const GangResource resource = ResourceOf(gang.gang_api);
  return {{"apiVersion", absl::StrCat(resource.group, "/", resource.version)},
          {"kind", resource.kind},
          {"metadata", ObjectMetadata(job, gang.group)},
          {"spec", Spec(job, gang.gang_api, roles, settings)}};
}

void JoinGang(const GangMembership& gang, json& pod) {
  json& spec = pod["spec"];
  switch (gang.gang_api) {
    case GangApi::kVolcano:
      pod["metadata"]["annotations"][kVolcanoGroup] = gang.group;
      SetDefault(spec, "schedulerName", kVolcanoScheduler);
      break;
    case GangApi::kCoscheduling:
      pod["metadata"]["labels"][kCoschedulingGroup] = gang.group;
      SetDefault(spec, "schedulerName", kCoschedulingScheduler);
      break;
    case GangApi::kNativeWorkload:
      spec["workloadRef"] = {{"name", gang.group}, {"podGroup", kPodGroupName}};
      break;
    case GangApi::kNativeAlpha:
    case GangApi::kNativeBeta:
      spec["schedulingGroup"] = {{"podGroupName", gang.group}};
      break;
  }
}

}  // namespace hetero::children
