#include "tests/integration/e2e/support/nodes.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <sstream>

#include "tests/integration/operator/support/control_plane.h"

namespace hetero::testing {

namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

struct RunningContainer {
  std::string node;
  std::string id;
};

// Of the pod's container `runtime`; empty when it does not run.
RunningContainer Find(const json& pod) {
  const json status = pod.is_object() ? pod.value("status", json::object()) : json::object();
  for (const json& container : status.value("containerStatuses", json::array())) {
    const std::string id = container.value("containerID", "");
    if (container["name"] != "runtime" || id.empty()) continue;
    return {pod["spec"].value("nodeName", ""), id.substr(id.rfind('/') + 1)};
  }
  return {};
}

// The same; a failed test when it does not run.
RunningContainer Runtime(const std::string& name_space, const std::string& pod) {
  const json object = ControlPlane::Get().Object(kube::kPods, {name_space, pod});
  const RunningContainer container = Find(object);
  if (container.id.empty()) {
    ADD_FAILURE() << name_space << "/" << pod << " has no container that runs: " << object.dump(1);
  }
  return container;
}

// Containers of the node and their process 1.
std::vector<std::pair<std::string, std::string>> Tasks(const std::string& node) {
  std::istringstream lines(Nodes::MustRun(node, {"ctr", "-n", "k8s.io", "task", "ls"}));
  std::vector<std::pair<std::string, std::string>> tasks;
  std::string line;
  std::getline(lines, line);  // head of the table
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string id, pid;
    if (words >> id >> pid) tasks.emplace_back(id, pid);
  }
  return tasks;
}

}  // namespace

std::string SharedFolder() { return Environment("HETERO_KIND_SHARED"); }
std::string SharedFolderInNodes() { return Environment("HETERO_KIND_SHARED_IN_NODES"); }

bool Nodes::reachable() { return !Environment("KIND_CLUSTER_NAME").empty(); }

std::vector<std::string> Nodes::Workers() {
  std::vector<std::string> names;
  const std::string output = ControlPlane::Get().MustKubectl(
      {"get", "nodes", "-l", "!node-role.kubernetes.io/control-plane", "-o",
       "jsonpath={range .items[*]}{.metadata.name}{\"\\n\"}{end}"});
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) names.push_back(line);
  return names;
}

CommandResult Nodes::Run(const std::string& node, std::vector<std::string> command) {
  command.insert(command.begin(), {"docker", "exec", node});
  return RunCommand(command, "", std::chrono::seconds(120));
}

std::string Nodes::MustRun(const std::string& node, std::vector<std::string> command) {
  const CommandResult result = Run(node, command);
  EXPECT_EQ(result.exit_code, 0) << node << ": " << ::testing::PrintToString(command) << "\n"
                                 << result.output;
  return result.output;
}

void Nodes::KillRuntime(const std::string& name_space, const std::string& pod) {
  const RunningContainer container = Runtime(name_space, pod);
  if (container.id.empty()) return;
  MustRun(container.node, {"ctr", "-n", "k8s.io", "task", "kill", "-s", "SIGKILL", container.id});
}

bool Nodes::TrySignalRuntime(const std::string& name_space, const std::string& pod,
                             const std::string& signal) {
  const RunningContainer container =
      Find(ControlPlane::Get().Object(kube::kPods, {name_space, pod}));
  if (container.id.empty()) return false;
  return Run(container.node, {"ctr", "-n", "k8s.io", "task", "kill", "-s", signal, container.id})
             .exit_code == 0;
}

void Nodes::FreezeRuntime(const std::string& name_space, const std::string& pod) {
  const RunningContainer container = Runtime(name_space, pod);
  if (container.id.empty()) return;
  MustRun(container.node, {"ctr", "-n", "k8s.io", "task", "kill", "-s", "SIGSTOP", container.id});
}

bool Nodes::RuntimeIsNonDumpable(const std::string& name_space, const std::string& pod) {
  const RunningContainer container = Runtime(name_space, pod);
  for (const auto& [id, pid] : Tasks(container.node)) {
    if (id != container.id) continue;
    const std::string process = "/proc/" + pid;
    std::istringstream owners(
        MustRun(container.node, {"stat", "-c", "%u", process, process + "/environ"}));
    int user = 0, reader = 0;
    EXPECT_TRUE(owners >> user >> reader) << owners.str();
    EXPECT_NE(user, 0) << pod << " is run by root, to whom everything is open";
    return reader == 0;
  }
  ADD_FAILURE() << pod << " has no process";
  return false;
}

std::vector<int> Nodes::ListeningPorts(const std::string& name_space, const std::string& pod) {
  const RunningContainer container = Runtime(name_space, pod);
  std::set<int> ports;
  for (const auto& [id, pid] : Tasks(container.node)) {
    if (id != container.id) continue;
    std::istringstream lines(MustRun(
        container.node, {"sh", "-c", "cat /proc/" + pid + "/net/tcp /proc/" + pid + "/net/tcp6"}));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string number, local, remote, state;
      words >> number >> local >> remote >> state;
      const size_t colon = local.rfind(':');
      if (state != "0A" || colon == std::string::npos) continue;  // LISTEN
      ports.insert(std::stoi(local.substr(colon + 1), nullptr, 16));
    }
  }
  return {ports.begin(), ports.end()};
}

void Nodes::Reboot(const std::string& node) {
  MustRun(node, {"systemctl", "stop", "kubelet"});
  for (const auto& [id, pid] : Tasks(node)) {
    // Whoever goes with another is gone already.
    Run(node, {"ctr", "-n", "k8s.io", "task", "kill", "-s", "SIGKILL", "-a", id});
  }
  MustRun(node, {"systemctl", "restart", "containerd"});
  MustRun(node, {"systemctl", "start", "kubelet"});
}

}  // namespace hetero::testing
