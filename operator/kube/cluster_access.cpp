#include "operator/kube/cluster_access.h"

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "operator/kube/credentials.h"

namespace hetero::kube {
namespace {

namespace fs = std::filesystem;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool Exists(const std::string& file) {
  std::error_code error;
  return fs::exists(file, error);
}

std::string TrimEnd(std::string text) {
  text.erase(text.find_last_not_of(" \r\n\t") + 1);
  return text;
}

}  // namespace

absl::StatusOr<ClusterAccess> InClusterAccess(base::Clock& clock, const std::string& folder) {
  std::string host = Variable("KUBERNETES_SERVICE_HOST");
  const std::string port = Variable("KUBERNETES_SERVICE_PORT");
  const std::string token = folder + "/token";
  if (host.empty() || port.empty() || !Exists(token)) {
    return absl::FailedPreconditionError(
        "not inside a pod with a service account: KUBERNETES_SERVICE_HOST, "
        "KUBERNETES_SERVICE_PORT or " +
        token + " is missing");
  }
  ClusterAccess access;
  if (host.find(':') != std::string::npos) host = "[" + host + "]";  // IPv6
  access.server = "https://" + host + ":" + port;
  HETERO_ASSIGN_OR_RETURN(access.ca_pem, Resolve({.file = folder + "/ca.crt"}));
  if (const auto name_space = ReadFile(folder + "/namespace"); name_space.ok()) {
    access.name_space = TrimEnd(*name_space);
  }
  access.credentials = FileCredentials(clock, {.file = token}, {}, {});
  return access;
}

absl::StatusOr<ClusterAccess> DefaultAccess(base::Clock& clock, const std::string& file,
                                            const std::string& context,
                                            const std::string& service_account) {
  if (!file.empty()) return KubeconfigAccess(clock, file, context);
  const std::string variable = Variable("KUBECONFIG");
  if (!variable.empty()) {
    std::vector<std::string> files = absl::StrSplit(variable, ':', absl::SkipEmpty());
    std::erase_if(files, [](const std::string& candidate) { return !Exists(candidate); });
    if (files.empty()) {
      return absl::NotFoundError("no file of KUBECONFIG exists: " + variable +
                                 "; correct it, or unset it");
    }
    return KubeconfigAccess(clock, files, context);
  }
  const std::string home = Variable("HOME") + "/.kube/config";
  if (Exists(home)) return KubeconfigAccess(clock, home, context);
  const std::string looked_at = "KUBECONFIG is not set, and " + home + " does not exist";
  if (!context.empty()) {
    return absl::NotFoundError("there is no kubeconfig to find the context \"" + context +
                               "\" in: " + looked_at + "; give --kubeconfig, or no context");
  }
  absl::StatusOr<ClusterAccess> in_cluster = InClusterAccess(clock, service_account);
  if (in_cluster.status().code() != absl::StatusCode::kFailedPrecondition) return in_cluster;
  return absl::NotFoundError("no cluster to talk to: " + looked_at +
                             ", and this is no pod with a service account; give --kubeconfig, or "
                             "create one of these");
}

}  // namespace hetero::kube
