#include "tests/fakes/head/views.h"

#include <charconv>

#include "absl/strings/escaping.h"
#include "api/job_resource.h"
#include "api/labels.h"
#include "base/json_access.h"

namespace hetero::testing {
namespace {

using nlohmann::json;

const json& At(const json& object, std::initializer_list<std::string> path) {
  const json* here = &object;
  for (const std::string& name : path) here = &base::FieldOf(*here, name);
  return *here;
}

std::string Text(const json& object, std::initializer_list<std::string> path) {
  const json& value = At(object, path);
  return value.is_string() ? value.get<std::string>() : "";
}

template <typename T = int>
T Number(const std::string& text) {
  T value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string OwnerOf(const json& object) {
  for (const json& owner : base::ListOf(At(object, {"metadata"}), "ownerReferences")) {
    if (base::IsTrue(owner, "controller")) return base::TextOf(owner, "uid");
  }
  return "";
}

}  // namespace

std::shared_ptr<const JobView> ViewJob(const json& object) {
  auto view = std::make_shared<JobView>();
  view->uid = Text(object, {"metadata", "uid"});
  view->tls = Text(object, {"spec", "network", "tls"}) != "Disabled";
  view->script = Text(object, {"metadata", "annotations", kScriptAnnotation});
  view->go_on = At(object, {"metadata", "annotations", kContinueAnnotation}).is_string();
  const json& roles = At(object, {"spec", "roles"});
  if (!roles.is_array()) return view;
  for (const json& role : roles) {
    const json& given = At(role, {"replicas"});
    const json& least = At(role, {"minReplicas"});
    const int replicas = given.is_number() ? given.get<int>() : 1;
    view->roles.push_back({.name = Text(role, {"name"}),
                           .type = Text(role, {"type"}),
                           .replicas = replicas,
                           .min_replicas = least.is_number() ? least.get<int>() : replicas});
  }
  return view;
}

std::shared_ptr<const PodView> ViewPod(const json& object) {
  auto view = std::make_shared<PodView>();
  const auto label = [&object](const char* name) {
    return Text(object, {"metadata", "labels", name});
  };
  view->name_space = Text(object, {"metadata", "namespace"});
  view->name = Text(object, {"metadata", "name"});
  view->uid = Text(object, {"metadata", "uid"});
  view->job_uid = label(api::kJobUidLabel);
  view->role = label(api::kRoleLabel);
  view->index = Number(label(api::kReplicaIndexLabel));
  view->attempt = Number(label(api::kAttemptLabel));
  view->incarnation =
      Number<int64_t>(Text(object, {"metadata", "annotations", api::kIncarnationAnnotation}));
  if (view->job_uid.empty() || view->role.empty()) return nullptr;
  if (OwnerOf(object) != view->job_uid) return nullptr;  // only says that it is the job's
  const json& containers = At(object, {"status", "containerStatuses"});
  if (!containers.is_array()) return view;
  for (const json& container : containers) {
    if (Text(container, {"name"}) != api::kRuntimeContainer) continue;
    // A pod that is being deleted is already losing its processes.
    view->running = At(container, {"state", "running"}).is_object() &&
                    At(object, {"metadata", "deletionTimestamp"}).is_null();
  }
  return view;
}

std::shared_ptr<const ServiceView> ViewService(const json& object) {
  const std::string owner = OwnerOf(object);
  if (owner.empty()) return nullptr;
  return std::make_shared<ServiceView>(
      ServiceView{.job_uid = owner, .cluster_ip = Text(object, {"spec", "clusterIP"})});
}

std::string SecretValue(const json& secret, const std::string& key) {
  std::string value;
  return absl::Base64Unescape(Text(secret, {"data", key}), &value) ? value : "";
}

std::string ConfigValue(const json& config_map, const std::string& key) {
  return Text(config_map, {"data", key});
}

}  // namespace hetero::testing
