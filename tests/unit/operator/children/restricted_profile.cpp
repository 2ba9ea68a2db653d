#include "tests/unit/operator/children/restricted_profile.h"

#include <algorithm>
#include <set>

namespace hetero::children {
namespace {

using nlohmann::json;

json At(const json& object, const std::string& pointer) {
  return object.value(json::json_pointer(pointer), json());
}

struct Checker {
  const json& pod;
  std::vector<std::string> violations;

  void Require(bool holds, const std::string& what) {
    if (!holds) violations.push_back(what);
  }

  void CheckPod() {
    for (const char* field : {"hostNetwork", "hostPID", "hostIPC"}) {
      Require(At(pod, std::string("/spec/") + field) != true, field);
    }
    static const std::set<std::string> kVolumes = {
        "configMap", "csi",   "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim",
        "projected", "secret"};
    for (const json& volume : pod.at("spec").value("volumes", json::array())) {
      for (const auto& [key, unused] : volume.items()) {
        Require(key == "name" || kVolumes.contains(key), "volume type " + key);
      }
    }
    Require(At(pod, "/spec/securityContext/sysctls").is_null(), "sysctls");
    Require(At(pod, "/spec/securityContext/runAsUser") != 0, "pod runAsUser 0");
    Require(At(pod, "/spec/securityContext/windowsOptions").is_null(), "windowsOptions");
    Require(At(pod, "/spec/securityContext/seLinuxOptions").is_null(), "seLinuxOptions");
  }

  void CheckContainer(const json& container) {
    const std::string name = container.value("name", "?") + ": ";
    const json security = container.value("securityContext", json::object());
    const auto effective = [&](const std::string& pointer) {
      const json own = At(security, pointer);
      return own.is_null() ? At(pod, "/spec/securityContext" + pointer) : own;
    };
    Require(At(security, "/privileged") != true, name + "privileged");
    Require(At(security, "/allowPrivilegeEscalation") == false, name + "allowPrivilegeEscalation");
    Require(effective("/runAsNonRoot") == true, name + "runAsNonRoot");
    Require(effective("/runAsUser") != 0, name + "runAsUser 0");
    const json seccomp = effective("/seccompProfile/type");
    Require(seccomp == "RuntimeDefault" || seccomp == "Localhost", name + "seccompProfile");
    const json dropped = At(security, "/capabilities/drop");
    Require(dropped.is_array() && std::find(dropped.begin(), dropped.end(), "ALL") != dropped.end(),
            name + "capabilities.drop");
    for (const json& added :
         security.value(json::json_pointer("/capabilities/add"), json::array())) {
      Require(added == "NET_BIND_SERVICE", name + "capabilities.add " + added.dump());
    }
    const json proc = At(security, "/procMount");
    Require(proc.is_null() || proc == "Default", name + "procMount");
    for (const json& port : container.value("ports", json::array())) {
      Require(port.value("hostPort", 0) == 0, name + "hostPort");
    }
  }
};

}  // namespace

std::vector<std::string> RestrictedViolations(const json& pod) {
  Checker checker{pod, {}};
  checker.CheckPod();
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"}) {
    for (const json& container : pod.at("spec").value(list, json::array())) {
      checker.CheckContainer(container);
    }
  }
  return checker.violations;
}

}  // namespace hetero::children
