#include "operator/children/script_pod.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "api/operators.h"
#include "operator/children/template_json.h"

namespace hetero::children {

using nlohmann::json;

bool RunsScript(const api::HeteroTrainingJob& job, const api::Role& role) {
  return job.spec.training.script && role.type == api::RoleType::kGpuWorker;
}

bool BringsOwnImage(const api::HeteroTrainingJob& job, const api::Role& role) {
  return RunsScript(job, role) ||
         (role.type == api::RoleType::kCpuWorker && api::HasPython(job.spec.pipeline));
}

json InstallContainer(const PodSlot& slot, const Settings& settings) {
  json container = {
      {"name", kInstallContainer},
      {"image", slot.install_image.empty() ? settings.runtime_image : slot.install_image},
      {"command", {"hetero-runtime"}},
      {"args", {"install", kProgramFolder}},
      // Stated, because a namespace may ask for it (ResourceQuota); the memory is mostly the page
      // cache of what is copied.
      {"resources",
       {{"requests", {{"cpu", "100m"}, {"memory", "128Mi"}}},
        {"limits", {{"cpu", "1"}, {"memory", "256Mi"}}}}},
      {"securityContext",
       {{"allowPrivilegeEscalation", false},
        {"readOnlyRootFilesystem", true},
        {"capabilities", {{"drop", json::array({"ALL"})}}}}},
      {"terminationMessagePolicy", "FallbackToLogsOnError"},
      {"volumeMounts", json::array({{{"name", kProgramVolume}, {"mountPath", kProgramFolder}}})}};
  if (!settings.image_pull_policy.empty()) {
    container["imagePullPolicy"] = settings.image_pull_policy;
  }
  return container;
}

json InstalledCommand() { return {absl::StrCat(kProgramFolder, "/bin/hetero-runtime")}; }

json AgentArguments(const api::Role& role, const std::string& metrics_address) {
  return {"agent", "--ranks", absl::StrCat(role.ranks_per_replica()), "--metrics-listen",
          metrics_address};
}

void SetScriptEnvironment(json& container) {
  json& variables = MutableList(container, "env");
  const auto set_default = [&variables](const char* name, const char* value) {
    if (!Lists(variables, "name", name)) variables.push_back({{"name", name}, {"value", value}});
  };
  set_default("HOME", "/tmp");
  set_default("XDG_CACHE_HOME", "/tmp/.cache");
  // Whoever has no line in the image's passwd file; Python's getpass asks these first.
  set_default("USER", "hetero");
  set_default("LOGNAME", "hetero");
}

}  // namespace hetero::children
