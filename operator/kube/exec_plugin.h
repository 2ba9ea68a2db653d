#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "operator/kube/cluster_access.h"

namespace hetero::kube {

// A kubeconfig's `exec` entry: a program that prints a credential
// (client.authentication.k8s.io/v1 and v1beta1).
struct ExecPlugin {
  std::string command;  // a path, or a name to look for in PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;  // beside this process's own
  std::string api_version;
  nlohmann::json cluster;  // for the plugin's eyes; null: provideClusterInfo is off
  std::string install_hint;
  base::Duration deadline = std::chrono::seconds(60);
};

struct ExecCredential {
  Credential credential;
  std::optional<base::WallTime> expires;
};

// Runs the plugin, without standard input, and reads what it prints. Errors carry the end of its
// standard error; kDeadlineExceeded when it was killed for taking too long.
absl::StatusOr<ExecCredential> RunExecPlugin(const ExecPlugin& plugin);

// The credential in a plugin's standard output.
absl::StatusOr<ExecCredential> ParseExecCredential(const std::string& text,
                                                   const std::string& api_version);

}  // namespace hetero::kube
