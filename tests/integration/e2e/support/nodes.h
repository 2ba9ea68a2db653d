#pragma once

#include <string>
#include <vector>

#include "tests/integration/operator/support/command.h"

// What a test does to nodes from outside Kubernetes: the nodes of tests/cluster/kind are containers
// of the docker daemon beside this program.
namespace hetero::testing {

class Nodes {
 public:
  // False on a cluster that was given by KUBECONFIG: its nodes are out of reach, and tests that
  // need them skip.
  static bool reachable();
  // Names of the nodes that take pods.
  static std::vector<std::string> Workers();
  // A command in the node.
  static CommandResult Run(const std::string& node, std::vector<std::string> command);
  static std::string MustRun(const std::string& node, std::vector<std::string> command);
  // kill -9 to process 1 of the pod's container `runtime`.
  static void KillRuntime(const std::string& name_space, const std::string& pod);
  // Stops process 1 of that container for good (SIGSTOP), as a process that hangs. Only a kill ends
  // it, which the kubelet sends when the pod's grace is over.
  static void FreezeRuntime(const std::string& name_space, const std::string& pod);
  // A signal to process 1 of that container; false when there is none.
  static bool TrySignalRuntime(const std::string& name_space, const std::string& pod,
                               const std::string& signal);
  // Whether only root may see the memory and the environment of process 1 of that container, which
  // then leaves no core file either, wherever the kernel writes them (base/non_dumpable.h). The
  // container's user must not be root.
  static bool RuntimeIsNonDumpable(const std::string& name_space, const std::string& pod);
  // TCP ports on which something in the pod listens.
  static std::vector<int> ListeningPorts(const std::string& name_space, const std::string& pod);
  // What a reboot does to Kubernetes: the kubelet and the container runtime stop, all that runs in
  // containers dies, both start again.
  static void Reboot(const std::string& node);
};

// A folder of this machine that every node has too; empty when there is none.
std::string SharedFolder();
std::string SharedFolderInNodes();

}  // namespace hetero::testing
