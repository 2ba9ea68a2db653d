#include "operator/children/runtime_container.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "api/job_resource.h"
#include "api/ports.h"
#include "base/json_access.h"
#include "operator/children/environment.h"
#include "operator/children/script_pod.h"
#include "operator/children/template_json.h"

namespace hetero::children {
namespace {

using base::ListOf;
using base::ObjectOf;
using nlohmann::json;

constexpr char kFileScheme[] = "file://";
constexpr char kGpuResource[] = "nvidia.com/gpu";
constexpr char kDefaultCpuRequest[] = "2";  // of a CPU worker

std::string Listen(int port) { return absl::StrCat("0.0.0.0:", port); }

json HeadArguments(const api::HeteroTrainingJob& job, const PodSlot& slot) {
  json arguments = {"head",
                    "--job",
                    absl::StrCat(kConfigFolder, "/job.json"),
                    "--listen",
                    Listen(api::kHeadPort),
                    "--status-listen",
                    Listen(api::kStatusPort),
                    "--page-listen",
                    Listen(api::kPagePort),
                    "--metrics-listen",
                    Listen(api::kMetricsPort),
                    "--created-unix-ns",
                    absl::StrCat(slot.job_created > 0 ? slot.job_created : slot.incarnation),
                    "--leave-on-stop"};
  if (job.spec.output) {
    arguments.push_back("--output");
    arguments.push_back(std::string(absl::StripPrefix(job.spec.output->uri, kFileScheme)));
  }
  return arguments;
}

// A template that brings its own command brings its arguments too, but not where the manifest names
// the script to run.
void SetCommand(const api::HeteroTrainingJob& job, const PodSlot& slot, json& container) {
  if (RunsScript(job, *slot.role)) {
    container["command"] = InstalledCommand();
    container["args"] = AgentArguments(*slot.role, Listen(api::kMetricsPort));
    return;
  }
  if (container.contains("command")) return;
  switch (slot.role->type) {
    case api::RoleType::kHead:
      container["command"] = {"hetero-runtime"};
      SetDefault(container, "args", HeadArguments(job, slot));
      return;
    case api::RoleType::kCpuWorker:
      container["command"] =
          BringsOwnImage(job, *slot.role) ? InstalledCommand() : json::array({"hetero-runtime"});
      SetDefault(container, "args",
                 {"cpu-worker", "--listen", Listen(api::kFeedPort), "--metrics-listen",
                  Listen(api::kMetricsPort)});
      return;
    case api::RoleType::kGpuWorker:
      container["command"] = {"hetero-trainer"};
      SetDefault(container, "args",
                 {"--metrics-listen", Listen(api::kMetricsPort), "--gpus",
                  absl::StrCat(slot.role->gpus_per_replica.value_or(1))});
      return;
  }
}

void SetImage(const PodSlot& slot, const Settings& settings, json& container) {
  const bool trains = slot.role->type == api::RoleType::kGpuWorker;
  const std::string& usual = trains ? settings.trainer_image : settings.runtime_image;
  SetDefault(container, "image", slot.image.empty() ? usual : slot.image);
  if (!settings.image_pull_policy.empty()) {
    SetDefault(container, "imagePullPolicy", settings.image_pull_policy);
  }
}

void AddPorts(const PodSlot& slot, json& container) {
  json& ports = MutableList(container, "ports");
  for (const auto& [name, number] : PortsOf(slot.role->type)) {
    bool taken = Lists(ports, "name", name);
    for (const json& port : ports) {
      taken = taken || (port.is_object() && port.value("containerPort", json()) == number);
    }
    if (!taken) {
      ports.push_back({{"name", name}, {"containerPort", number}, {"protocol", "TCP"}});
    }
  }
}

// Readiness alone: it shows in the pod's status who takes part in the training. There is no
// liveness probe on purpose. A process that hangs is told apart from one that computes by the head,
// through heartbeats and steps; the kubelet knows neither, and would kill a trainer whose node is
// merely busy. A head that hangs is judged by the operator, with this probe as one of two
// witnesses.
void SetProbes(json& container) {
  SetDefault(container, "readinessProbe",
             {{"httpGet", {{"path", "/readyz"}, {"port", api::kMetricsPort}}},
              {"periodSeconds", 5},
              {"timeoutSeconds", 2}});
}

bool IsExtendedResource(const std::string& name) {
  return absl::StrContains(name, '/') && !absl::StrContains(name, "kubernetes.io/");
}

bool NamesExtendedResource(const json& resources) {
  if (!ListOf(resources, "claims").empty()) return true;  // dynamic resource allocation
  for (const char* part : {"limits", "requests"}) {
    for (const auto& [name, unused] : ObjectOf(resources, part).items()) {
      if (IsExtendedResource(name)) return true;
    }
  }
  return false;
}

void SetResources(const PodSlot& slot, json& container) {
  const json given = ObjectOf(container, "resources");
  if (slot.role->type == api::RoleType::kCpuWorker) {
    const bool given_cpu = ObjectOf(given, "requests").contains("cpu") ||
                           ObjectOf(given, "limits").contains("cpu");  // the API copies it
    if (given_cpu) return;
    MutableObject(MutableObject(container, "resources"), "requests")["cpu"] = kDefaultCpuRequest;
  }
  const int gpus = slot.role->gpus_per_replica.value_or(1);
  if (slot.role->type == api::RoleType::kGpuWorker && gpus > 0 && !NamesExtendedResource(given)) {
    MutableObject(MutableObject(container, "resources"), "limits")[kGpuResource] =
        absl::StrCat(gpus);
  }
}

void AddMounts(const api::HeteroTrainingJob& job, const PodSlot& slot, json& container) {
  json& mounts = MutableList(container, "volumeMounts");
  const auto add = [&mounts](const char* volume, const char* path, bool read_only) {
    if (Lists(mounts, "mountPath", path)) return;
    json mount = {{"name", volume}, {"mountPath", path}};
    if (read_only) mount["readOnly"] = true;
    mounts.push_back(std::move(mount));
  };
  add(kConfigVolume, kConfigFolder, true);
  if (job.spec.network.tls == api::Switch::kEnabled) add(kTlsVolume, kTlsFolder, true);
  if (BringsOwnImage(job, *slot.role)) add(kProgramVolume, kProgramFolder, true);
  add(kTemporaryVolume, "/tmp", false);
  add(kSharedMemoryVolume, "/dev/shm", false);
}

// The container's share of the profile `restricted`; the pod's share is in pod.cpp.
void SetSecurity(json& container) {
  json& security = MutableObject(container, "securityContext");
  const bool privileged = security.value("privileged", json()) == true;
  // The API refuses the two together.
  if (!privileged) SetDefault(security, "allowPrivilegeEscalation", false);
  SetDefault(security, "readOnlyRootFilesystem", true);
  SetDefault(MutableObject(security, "capabilities"), "drop", {"ALL"});
}

}  // namespace

std::vector<std::pair<std::string, int>> PortsOf(api::RoleType type) {
  switch (type) {
    case api::RoleType::kHead:
      return {{"join", api::kHeadPort},
              {"status", api::kStatusPort},
              {"page", api::kPagePort},
              {"metrics", api::kMetricsPort}};
    case api::RoleType::kCpuWorker:
      return {{"feed", api::kFeedPort}, {"metrics", api::kMetricsPort}};
    case api::RoleType::kGpuWorker:
      return {{"metrics", api::kMetricsPort}};
  }
  return {};
}

json RuntimeContainer(const api::HeteroTrainingJob& job, const PodSlot& slot,
                      const Settings& settings, json given) {
  json container = given.is_object() ? std::move(given) : json::object();
  container["name"] = api::kRuntimeContainer;
  SetImage(slot, settings, container);
  SetCommand(job, slot, container);
  AddPorts(slot, container);
  SetDefault(container, "terminationMessagePolicy", "FallbackToLogsOnError");
  SetEnvironment(job, slot, container);
  if (BringsOwnImage(job, *slot.role)) SetScriptEnvironment(container);
  SetResources(slot, container);
  AddMounts(job, slot, container);
  SetProbes(container);
  SetSecurity(container);
  return container;
}

}  // namespace hetero::children
