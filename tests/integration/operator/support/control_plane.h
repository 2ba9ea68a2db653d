#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "operator/kube/client.h"
#include "tests/integration/operator/support/api_proxy.h"
#include "tests/integration/operator/support/command.h"

namespace hetero::testing {

using nlohmann::json;

// The real control plane that tests/cluster/run started around this program, seen as its
// administrator. The operator under test never gets these rights.
class ControlPlane {
 public:
  static ControlPlane& Get();

  kube::Client& client() { return *client_; }
  kube::Transport& transport() { return *transport_; }
  // kubectl as the administrator.
  CommandResult Kubectl(std::vector<std::string> arguments, const std::string& input = "",
                        std::chrono::seconds deadline = std::chrono::seconds(60));
  // As above; fails the test when kubectl does. Returns its output.
  std::string MustKubectl(std::vector<std::string> arguments, const std::string& input = "");

  // Null when there is none.
  json Object(const kube::Resource& resource, const kube::ObjectKey& key);
  std::vector<json> Objects(const kube::Resource& resource, const std::string& name_space,
                            const std::string& label_selector = "");
  // Creates the object; null, and the test fails, when it cannot or one of its name is there. Lets
  // a server come back first: connections may be those of one that has restarted.
  json Create(const kube::Resource& resource, const std::string& name_space, const json& object);
  absl::Status Delete(const kube::Resource& resource, const kube::ObjectKey& key);
  // Every pod, Service, ConfigMap, Secret, NetworkPolicy and Lease in the namespace that carries
  // the job's uid as owner or as label, as "pods/name": asked of the API, not of anything the
  // operator says.
  std::vector<std::string> Children(const std::string& name_space, const std::string& job_uid);

  // Merge patch.
  void Patch(const kube::Resource& resource, const kube::ObjectKey& key, const json& patch,
             const std::string& subresource = "");
  void Annotate(const kube::Resource& resource, const kube::ObjectKey& key, const std::string& name,
                const std::string& value);

  // Takes a KWOK node away (NotReady, its pods frozen) and brings it back.
  void LoseNode(const std::string& name);
  void BringBackNode(const std::string& name);
  // tests/cluster/component.
  void Component(const std::string& action, const std::string& name);

  // A kubeconfig in which the ServiceAccount talks to `server`; written into the test's folder.
  std::string ServiceAccountKubeconfig(const std::string& server, const std::string& name_space,
                                       const std::string& account);
  ApiProxy::Options ProxyOptions() const;
  std::string server() const { return server_; }
  // For logs and files of this test program.
  std::string folder() const { return folder_; }

 private:
  ControlPlane();
  std::string server_;  // https://host:port
  std::string folder_;
  std::string keys_folder_;
  std::unique_ptr<kube::Transport> transport_;
  metrics::Registry registry_;
  std::unique_ptr<kube::Client> client_;
};

// No wait ends sooner: how fast the machine is says nothing about the operator.
inline constexpr std::chrono::seconds kPatience{180};

// Polls until `holds`; fails the test with `what` and what `describe` says when the deadline, at
// least kPatience, passes.
bool WaitFor(const std::string& what, const std::function<bool()>& holds,
             std::chrono::seconds deadline = std::chrono::seconds(60),
             const std::function<std::string()>& describe = nullptr);

}  // namespace hetero::testing
