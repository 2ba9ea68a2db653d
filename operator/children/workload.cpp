#include <array>
#include <string>
#include <utility>

#include "api/labels.h"
#include "base/json_access.h"
#include "operator/children/children.h"
#include "operator/children/names.h"
#include "operator/children/object_metadata.h"
#include "operator/children/template_json.h"

namespace hetero::children {
namespace {

using nlohmann::json;

constexpr char kVersion[] = "kueue.x-k8s.io/v1beta2";
constexpr char kGroup[] = "kueue.x-k8s.io";
constexpr char kJobUid[] = "kueue.x-k8s.io/job-uid";

// Annotations of a pod template by which a user asks for a place, and the field of the request.
constexpr std::array<std::pair<const char*, const char*>, 2> kTopologyLevels = {{
    {"kueue.x-k8s.io/podset-required-topology", "required"},
    {"kueue.x-k8s.io/podset-preferred-topology", "preferred"},
}};
constexpr char kUnconstrained[] = "kueue.x-k8s.io/podset-unconstrained-topology";

json TopologyRequest(const json& annotations) {
  json request = json::object();
  for (const auto& [annotation, field] : kTopologyLevels) {
    const std::string level = base::TextOf(annotations, annotation);
    if (!level.empty()) request[field] = level;
  }
  if (base::TextOf(annotations, kUnconstrained) == "true") request["unconstrained"] = true;
  if (!request.empty()) request["podIndexLabel"] = api::kReplicaIndexLabel;
  return request;
}

// What the first of them is made of: only its requests, selectors, tolerations and the like count.
json Set(const api::HeteroTrainingJob& job, const PodSet& set, const Settings& settings) {
  json pod = Pod(job, {.role = set.role}, settings);
  json& metadata = pod["metadata"];
  json request = TopologyRequest(metadata["annotations"]);
  json rendered = {{"name", set.role->name},
                   {"count", set.count},
                   {"template",
                    {{"metadata",
                      {{"labels", std::move(metadata["labels"])},
                       {"annotations", std::move(metadata["annotations"])}}},
                     {"spec", std::move(pod["spec"])}}}};
  if (!request.empty()) rendered["topologyRequest"] = std::move(request);
  return rendered;
}

}  // namespace

json Workload(const api::HeteroTrainingJob& job, const WorkloadSpec& workload,
              const Settings& settings) {
  json metadata = ObjectMetadata(job, workload.name);
  metadata["labels"][kJobUid] = job.metadata.uid;
  metadata["annotations"][api::kSpecHashAnnotation] = workload.spec_hash;
  json spec = {
      {"queueName", workload.queue}, {"priority", workload.priority}, {"podSets", json::array()}};
  if (!workload.priority_class.empty()) {
    spec["priorityClassRef"] = {
        {"group", kGroup}, {"kind", "WorkloadPriorityClass"}, {"name", workload.priority_class}};
  }
  for (const PodSet& set : workload.pod_sets) spec["podSets"].push_back(Set(job, set, settings));
  return {{"apiVersion", kVersion},
          {"kind", "Workload"},
          {"metadata", std::move(metadata)},
          {"spec", std::move(spec)}};
}

}  // namespace hetero::children
