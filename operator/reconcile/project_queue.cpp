#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/labels.h"
#include "operator/reconcile/json_access.h"
#include "operator/reconcile/project.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;

std::map<std::string, std::string> TextsOf(const json& object, const char* name) {
  std::map<std::string, std::string> texts;
  for (const auto& [key, value] : base::ObjectOf(object, name).items()) {
    if (value.is_string()) texts[key] = value.get<std::string>();
  }
  return texts;
}

std::vector<std::string> TolerationsOf(const json& object) {
  std::vector<std::string> tolerations;
  for (const json& toleration : ListOf(object, "tolerations")) {
    if (toleration.is_object()) tolerations.push_back(Dump(toleration));
  }
  return tolerations;
}

plan::WorkloadCondition ConditionFrom(const json& object) {
  return {.type = TextOf(object, "type"),
          .status = TextOf(object, "status"),
          .reason = TextOf(object, "reason"),
          .message = TextOf(object, "message"),
          .last_transition_time = TimeOf(object, "lastTransitionTime").value_or(base::WallTime{}),
          .observed_generation = IntegerOf(object, "observedGeneration")};
}

plan::PodSetAssignment AssignmentFrom(const json& object) {
  plan::PodSetAssignment assignment{.name = TextOf(object, "name")};
  for (const auto& [resource, flavor] : TextsOf(object, "flavors")) {
    auto& all = assignment.flavors;
    if (std::find(all.begin(), all.end(), flavor) == all.end()) all.push_back(flavor);
  }
  assignment.topology = FieldOf(object, "topologyAssignment").is_object();
  return assignment;
}

plan::AdmissionCheck CheckFrom(const json& object) {
  plan::AdmissionCheck check{.name = TextOf(object, "name"),
                             .state = TextOf(object, "state"),
                             .message = TextOf(object, "message")};
  for (const json& update : ListOf(object, "podSetUpdates")) {
    check.updates.push_back({.name = TextOf(update, "name"),
                             .labels = TextsOf(update, "labels"),
                             .annotations = TextsOf(update, "annotations"),
                             .node_selector = TextsOf(update, "nodeSelector"),
                             .tolerations = TolerationsOf(update)});
  }
  return check;
}

}  // namespace

std::shared_ptr<const plan::ObservedWorkload> ProjectWorkload(const json& object) {
  auto workload = std::make_shared<plan::ObservedWorkload>();
  const json& metadata = FieldOf(object, "metadata");
  workload->name = TextOf(metadata, "name");
  workload->name_space = TextOf(metadata, "namespace");
  workload->uid = TextOf(metadata, "uid");
  workload->owner_uid = TextOf(ControllerOf(object), "uid");
  workload->job = TextOf(FieldOf(metadata, "labels"), api::kJobNameLabel);
  workload->spec_hash = TextOf(FieldOf(metadata, "annotations"), api::kSpecHashAnnotation);
  workload->resource_version = TextOf(metadata, "resourceVersion");
  workload->generation = IntegerOf(metadata, "generation");
  workload->deleting = !FieldOf(metadata, "deletionTimestamp").is_null();
  const json& spec = FieldOf(object, "spec");
  workload->active = FieldOf(spec, "active") != false;
  workload->queue = TextOf(spec, "queueName");
  workload->priority_class = TextOf(FieldOf(spec, "priorityClassRef"), "name");
  workload->priority = SmallIntegerOf(spec, "priority");
  for (const json& set : ListOf(spec, "podSets")) {
    workload->pod_sets[TextOf(set, "name")] = SmallIntegerOf(set, "count");
  }
  const json& status = FieldOf(object, "status");
  for (const json& condition : ListOf(status, "conditions")) {
    workload->conditions.push_back(ConditionFrom(condition));
  }
  const json& admission = FieldOf(status, "admission");
  workload->holds_quota = admission.is_object();
  for (const json& assignment : ListOf(admission, "podSetAssignments")) {
    workload->assignments.push_back(AssignmentFrom(assignment));
  }
  for (const json& check : ListOf(status, "admissionChecks")) {
    workload->checks.push_back(CheckFrom(check));
  }
  return workload;
}

std::shared_ptr<const plan::ObservedFlavor> ProjectFlavor(const json& object) {
  const json& spec = FieldOf(object, "spec");
  return std::make_shared<plan::ObservedFlavor>(plan::ObservedFlavor{
      .node_labels = TextsOf(spec, "nodeLabels"), .tolerations = TolerationsOf(spec)});
}

std::shared_ptr<const int32_t> ProjectPriority(const json& object) {
  return std::make_shared<int32_t>(SmallIntegerOf(object, "value"));
}

}  // namespace hetero::reconcile
