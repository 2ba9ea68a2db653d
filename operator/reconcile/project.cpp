#include "operator/reconcile/project.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "api/labels.h"
#include "base/log.h"
#include "operator/reconcile/json_access.h"
#include "operator/reconcile/node_notice.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;

void ParseSpec(const json& object, plan::ObservedJob& observed) {
  json manifest = object.is_object() ? object : json::object();
  manifest.erase("status");
  if (json& metadata = manifest["metadata"]; metadata.is_object()) {
    metadata.erase("managedFields");
  }
  api::StoredJob stored = api::ReadStoredJob(Dump(manifest));
  observed.job = std::move(stored.job);
  observed.errors = std::move(stored.errors);
  observed.unknown_fields = std::move(stored.unknown_fields);
  observed.pods_known = stored.pods_known;
}

bool SameSpec(const json& metadata, const std::shared_ptr<const plan::ObservedJob>& previous) {
  return previous != nullptr && previous->generation == IntegerOf(metadata, "generation") &&
         previous->generation != 0 && previous->job.metadata.uid == TextOf(metadata, "uid");
}

std::map<std::string, std::string> Labels(const json& metadata) {
  std::map<std::string, std::string> labels;
  for (const auto& [name, value] : base::ObjectOf(metadata, "labels").items()) {
    if (value.is_string()) labels[name] = value.get<std::string>();
  }
  return labels;
}

api::JobStatus ReadStatus(const json& object, const std::string& job) {
  const json& status = FieldOf(object, "status");
  if (status.is_null()) return {};
  absl::StatusOr<api::JobStatus> parsed = api::StatusFromJson(Dump(status));
  if (parsed.ok()) return *std::move(parsed);
  log::Warning("a job's status cannot be read and is built anew",
               {{"job", job}, {"error", parsed.status().message()}});
  return {};
}

// What all kinds of objects have.
std::shared_ptr<plan::ObservedObject> Identified(const json& object) {
  auto observed = std::make_shared<plan::ObservedObject>();
  const json& metadata = FieldOf(object, "metadata");
  observed->name = TextOf(metadata, "name");
  observed->name_space = TextOf(metadata, "namespace");
  observed->uid = TextOf(metadata, "uid");
  observed->owner_uid = TextOf(ControllerOf(object), "uid");
  observed->deleting = !FieldOf(metadata, "deletionTimestamp").is_null();
  return observed;
}

std::optional<api::NodePrice> PriceOf(const json& labels, const NodePrices& prices) {
  std::string type = TextOf(labels, api::kInstanceTypeLabel);
  if (type.empty()) type = TextOf(labels, api::kOldInstanceTypeLabel);
  const bool spot = std::any_of(
      prices.spot_labels.begin(), prices.spot_labels.end(),
      [&labels](const auto& label) { return TextOf(labels, label.first.c_str()) == label.second; });
  return prices.sheet.Find(type, spot);
}

int32_t MinMemberOf(const json& spec, children::GangApi gang_api) {
  using children::GangApi;
  switch (gang_api) {
    case GangApi::kVolcano:
    case GangApi::kCoscheduling:
      return SmallIntegerOf(spec, "minMember");
    case GangApi::kNativeWorkload: {
      const json& groups = ListOf(spec, "podGroups");
      if (groups.empty()) return 0;
      return SmallIntegerOf(FieldOf(FieldOf(groups[0], "policy"), "gang"), "minCount");
    }
    case GangApi::kNativeAlpha:
    case GangApi::kNativeBeta:
      return SmallIntegerOf(FieldOf(FieldOf(spec, "schedulingPolicy"), "gang"), "minCount");
  }
  return 0;
}

}  // namespace

std::shared_ptr<const plan::ObservedJob> ProjectJob(
    const json& object, const std::shared_ptr<const plan::ObservedJob>& previous) {
  auto observed = std::make_shared<plan::ObservedJob>();
  const json& metadata = FieldOf(object, "metadata");
  if (SameSpec(metadata, previous)) {
    observed->job = previous->job;
    observed->errors = previous->errors;
    observed->unknown_fields = previous->unknown_fields;
    observed->pods_known = previous->pods_known;
    observed->job.metadata.labels = Labels(metadata);  // they have no part in the generation
  } else {
    ParseSpec(object, *observed);
  }
  observed->job.metadata.name = TextOf(metadata, "name");
  observed->job.metadata.name_space = TextOf(metadata, "namespace");
  observed->job.metadata.uid = TextOf(metadata, "uid");
  observed->status =
      ReadStatus(object, observed->job.metadata.name_space + "/" + observed->job.metadata.name);
  observed->created = TimeOf(metadata, "creationTimestamp").value_or(base::WallTime{});
  observed->resource_version = TextOf(metadata, "resourceVersion");
  observed->generation = IntegerOf(metadata, "generation");
  observed->deleting = !FieldOf(metadata, "deletionTimestamp").is_null();
  return observed;
}

std::shared_ptr<const plan::ObservedObject> ProjectObject(const json& object) {
  auto observed = Identified(object);
  observed->cluster_ip = TextOf(FieldOf(object, "spec"), "clusterIP");
  observed->ca_pem = TextOf(FieldOf(object, "data"), "ca.crt");
  return observed;
}

std::shared_ptr<const plan::ObservedObject> ProjectPodGroup(const json& object,
                                                            children::GangApi gang_api) {
  auto observed = Identified(object);
  observed->gang_api = gang_api;
  observed->min_member = MinMemberOf(FieldOf(object, "spec"), gang_api);
  return observed;
}

std::shared_ptr<const plan::ObservedNode> ProjectNode(const json& object,
                                                      const std::vector<std::string>& more_taints,
                                                      const NodePrices* prices) {
  auto observed = std::make_shared<plan::ObservedNode>();
  observed->name = TextOf(FieldOf(object, "metadata"), "name");
  for (const json& condition : ListOf(FieldOf(object, "status"), "conditions")) {
    if (TextOf(condition, "type") != "Ready") continue;
    observed->ready = TextOf(condition, "status") == "True";
    observed->since = TimeOf(condition, "lastTransitionTime").value_or(base::WallTime{});
  }
  observed->notice = ReadNodeNotice(object, more_taints);
  const json& labels = FieldOf(FieldOf(object, "metadata"), "labels");
  observed->in_zone = !TextOf(labels, api::kZoneLabel).empty();
  if (prices != nullptr) observed->price = PriceOf(labels, *prices);
  if (observed->price) {
    observed->allocatable =
        children::ResourcesOf(FieldOf(FieldOf(object, "status"), "allocatable"));
  }
  return observed;
}

}  // namespace hetero::reconcile
