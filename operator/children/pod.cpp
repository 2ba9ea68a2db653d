#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "api/job_resource.h"
#include "api/labels.h"
#include "base/json_access.h"
#include "operator/children/children.h"
#include "operator/children/names.h"
#include "operator/children/node_choice.h"
#include "operator/children/object_metadata.h"
#include "operator/children/role_type.h"
#include "operator/children/runtime_container.h"
#include "operator/children/script_pod.h"
#include "operator/children/template_json.h"

namespace hetero::children {
namespace {

using base::ListOf;
using base::ObjectOf;
using base::TextOf;
using nlohmann::json;

// Of Kueue, on the pods of an admitted Workload.
constexpr char kPodSetLabel[] = "kueue.x-k8s.io/podset";
constexpr char kWorkloadAnnotation[] = "kueue.x-k8s.io/workload";
constexpr char kTopologyGate[] = "kueue.x-k8s.io/topology";
constexpr const char* kTopologyRequests[] = {"kueue.x-k8s.io/podset-required-topology",
                                             "kueue.x-k8s.io/podset-preferred-topology",
                                             "kueue.x-k8s.io/podset-unconstrained-topology"};

constexpr int kUser = 65532;         // "nonroot" of the distroless images
constexpr int kGroupReadable = 288;  // 0440; JSON has no octal numbers
constexpr int kGraceSeconds = 30;

// `over` wins where both have a key.
void Overlay(json& under, const json& over) {
  for (const auto& [key, value] : over.items()) under[key] = value;
}

// Kueue opens the gate only of pods that say how they want to be placed; of a queue whose flavors
// all have a topology it places those that say nothing, too.
void SetUnconstrained(json& annotations) {
  for (const char* asked : kTopologyRequests) {
    if (annotations.contains(asked)) return;
  }
  annotations[kTopologyRequests[2]] = "true";
}

void PlaceMetadata(const Placement& placement, json& metadata) {
  for (const auto& [name, value] : placement.labels) metadata["labels"][name] = value;
  for (const auto& [name, value] : placement.annotations) metadata["annotations"][name] = value;
  metadata["labels"][kPodSetLabel] = placement.pod_set;
  if (placement.gated) SetUnconstrained(metadata["annotations"]);
  metadata["annotations"][kWorkloadAnnotation] = placement.workload;
}

// Kueue has chosen its flavors by the template's own selector: where both have a key they agree.
void PlaceSpec(const Placement& placement, json& spec) {
  json& selector = MutableObject(spec, "nodeSelector");
  for (const auto& [name, value] : placement.node_selector) selector[name] = value;
  if (selector.empty()) spec.erase("nodeSelector");
  for (const std::string& text : placement.tolerations) {
    json toleration = json::parse(text, nullptr, /*allow_exceptions=*/false);
    json& all = MutableList(spec, "tolerations");
    if (std::find(all.begin(), all.end(), toleration) == all.end()) {
      all.push_back(std::move(toleration));
    }
  }
  if (placement.gated) MutableList(spec, "schedulingGates").push_back({{"name", kTopologyGate}});
}

json PodMetadata(const api::HeteroTrainingJob& job, const PodSlot& slot, const json& given) {
  json metadata = ObjectMetadata(job, PodName(job.metadata, slot.role->name, slot.index));
  json labels = ObjectOf(given, "labels");
  Overlay(labels, metadata["labels"]);
  labels[api::kRoleLabel] = slot.role->name;
  labels[api::kReplicaIndexLabel] = absl::StrCat(slot.index);
  labels[api::kAttemptLabel] = absl::StrCat(slot.attempt);
  labels["app.kubernetes.io/component"] = slot.role->name;
  metadata["labels"] = std::move(labels);
  metadata["annotations"] = ObjectOf(given, "annotations");
  KeepFromConsolidation(*slot.role, metadata["annotations"]);
  metadata["annotations"][api::kIncarnationAnnotation] = absl::StrCat(slot.incarnation);
  if (slot.placement != nullptr) PlaceMetadata(*slot.placement, metadata);
  return metadata;
}

void SetContainers(const api::HeteroTrainingJob& job, const PodSlot& slot, const Settings& settings,
                   json& spec) {
  json& containers = MutableList(spec, "containers");
  for (json& container : containers) {
    if (TextOf(container, "name") != api::kRuntimeContainer) continue;
    container = RuntimeContainer(job, slot, settings, std::move(container));
    return;
  }
  containers.insert(containers.begin(), RuntimeContainer(job, slot, settings, json::object()));
}

void AddInstallation(const PodSlot& slot, const Settings& settings, json& spec) {
  json& containers = MutableList(spec, "initContainers");
  containers.insert(containers.begin(), InstallContainer(slot, settings));
}

bool IsMounted(const json& spec, const char* volume) {
  for (const json& container : spec["containers"]) {
    if (Lists(ListOf(container, "volumeMounts"), "name", volume)) return true;
  }
  return false;
}

// NCCL's ranks of one pod meet in shared memory; others only need that it exists.
const char* SharedMemorySize(const PodSlot& slot) {
  return slot.role->type == api::RoleType::kGpuWorker ? "1Gi" : "64Mi";
}

void AddVolumes(const api::HeteroTrainingJob& job, const PodSlot& slot, json& spec) {
  json volumes = json::array();
  for (const json& given : ListOf(spec, "volumes")) {
    const std::string name = TextOf(given, "name");
    const bool ours = name == kConfigVolume || name == kTlsVolume || name == kTemporaryVolume ||
                      name == kSharedMemoryVolume ||
                      (name == kProgramVolume && BringsOwnImage(job, *slot.role));
    if (!ours) volumes.push_back(given);
  }
  const auto add = [&](const char* name, json source) {
    if (!IsMounted(spec, name)) return;  // the template has something else at its path
    source["name"] = name;
    volumes.push_back(std::move(source));
  };
  add(kConfigVolume, {{"configMap", {{"name", ConfigMapName(job.metadata)}}}});
  json keys = json::array();
  for (const std::string& key : {CertificateKey(slot.role->type), PrivateKeyKey(slot.role->type)}) {
    keys.push_back({{"key", key}, {"path", key}});
  }
  add(kTlsVolume, {{"secret",
                    {{"secretName", SecretName(job.metadata)},
                     {"defaultMode", kGroupReadable},
                     {"items", std::move(keys)}}}});
  add(kTemporaryVolume, {{"emptyDir", json::object()}});
  if (BringsOwnImage(job, *slot.role)) add(kProgramVolume, {{"emptyDir", json::object()}});
  add(kSharedMemoryVolume,
      {{"emptyDir", {{"medium", "Memory"}, {"sizeLimit", SharedMemorySize(slot)}}}});
  spec["volumes"] = std::move(volumes);
}

// The pod's share of the profile `restricted`; a template that asks for root keeps it, and it is
// then up to the namespace whether it may.
void SetSecurity(json& spec) {
  json& security = MutableObject(spec, "securityContext");
  const bool root = security.value("runAsUser", json()) == 0;
  if (!root) SetDefault(security, "runAsNonRoot", true);
  SetDefault(security, "runAsUser", kUser);
  SetDefault(security, "runAsGroup", kUser);
  SetDefault(security, "fsGroup", kUser);
  SetDefault(security, "fsGroupChangePolicy", "OnRootMismatch");
  SetDefault(security, "seccompProfile", {{"type", "RuntimeDefault"}});
}

// A script that is asked to leave saves first, for runPolicy.stopGraceSeconds at most. Before that
// all ranks agree on the step, and after it the script has a while to end.
int GraceSeconds(const api::HeteroTrainingJob& job, const PodSlot& slot) {
  if (!RunsScript(job, *slot.role) || !job.spec.training.checkpoint) return kGraceSeconds;
  constexpr int kBeside = 15;
  return std::max(kGraceSeconds, job.spec.run_policy.stop_grace_seconds + kBeside);
}

// Preferred, not required: where no other node fits, the pod goes to one of these all the same. A
// field selector takes one value, so each node is a requirement of its own.
void AvoidNodes(const PodSlot& slot, json& spec) {
  if (slot.avoided_nodes.empty()) return;
  json others = json::array();
  for (const std::string& node : slot.avoided_nodes) {
    others.push_back(
        {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", json::array({node})}});
  }
  json& affinity = MutableObject(MutableObject(spec, "affinity"), "nodeAffinity");
  MutableList(affinity, "preferredDuringSchedulingIgnoredDuringExecution")
      .push_back({{"weight", 100}, {"preference", {{"matchFields", std::move(others)}}}});
}

void AddPullSecrets(const Settings& settings, json& spec) {
  if (settings.image_pull_secrets.empty()) return;
  json& secrets = MutableList(spec, "imagePullSecrets");
  for (const std::string& name : settings.image_pull_secrets) {
    if (!Lists(secrets, "name", name)) secrets.push_back({{"name", name}});
  }
}

}  // namespace

bool NamesRuntimeImage(const api::Role& role) {
  const json given = TemplateOf(role);
  for (const json& container : ListOf(ObjectOf(given, "spec"), "containers")) {
    if (TextOf(container, "name") != api::kRuntimeContainer) continue;
    return !TextOf(container, "image").empty();
  }
  return false;
}

json Pod(const api::HeteroTrainingJob& job, const PodSlot& slot, const Settings& settings) {
  const json given = TemplateOf(*slot.role);
  json spec = ObjectOf(given, "spec");
  SetContainers(job, slot, settings, spec);
  if (BringsOwnImage(job, *slot.role)) AddInstallation(slot, settings, spec);
  AddVolumes(job, slot, spec);
  SetSecurity(spec);
  AddPullSecrets(settings, spec);
  ChooseNodes(job, *slot.role, settings, spec);
  AvoidNodes(slot, spec);
  if (slot.placement != nullptr) PlaceSpec(*slot.placement, spec);
  spec["restartPolicy"] = "Never";  // who restarts is decided by the operator, which counts
  SetDefault(spec, "terminationGracePeriodSeconds", GraceSeconds(job, slot));
  SetDefault(spec, "automountServiceAccountToken", false);
  SetDefault(spec, "enableServiceLinks", false);
  json pod = {{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", PodMetadata(job, slot, ObjectOf(given, "metadata"))},
              {"spec", std::move(spec)}};
  if (slot.gang != nullptr) JoinGang(*slot.gang, pod);
  return pod;
}

}  // namespace hetero::children
