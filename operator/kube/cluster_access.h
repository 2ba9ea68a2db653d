#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"

// Where the API server is and as whom to talk to it: in-cluster service account or kubeconfig.
namespace hetero::kube {

// What the server is shown, at one moment.
struct Credential {
  std::string token;            // empty: none
  std::string certificate_pem;  // client certificate chain and key; empty: none
  std::string key_pem;
};

// Gives the credential to use now. Safe from any thread.
class CredentialSource {
 public:
  virtual ~CredentialSource() = default;
  // Cached: a token file is read again each minute, an exec plugin run again before its credential
  // expires. `refresh` drops the cache: the server has just answered 401.
  virtual absl::StatusOr<Credential> Get(bool refresh) = 0;
};

struct ClusterAccess {
  std::string server;  // "https://10.96.0.1:443"
  std::string ca_pem;  // trusted for this server, and nothing else is
  std::string
      tls_server_name;  // name to expect in the certificate instead of the host; usually empty
  bool insecure_skip_tls_verify = false;
  std::string name_space = "default";  // of the context or the pod
  std::shared_ptr<CredentialSource> credentials;
};

// From the files under `folder` and KUBERNETES_SERVICE_HOST and _PORT; kFailedPrecondition outside
// a pod.
absl::StatusOr<ClusterAccess> InClusterAccess(
    base::Clock& clock,
    const std::string& folder = "/var/run/secrets/kubernetes.io/serviceaccount");

// A kubeconfig file: certificate and key as data or files, token, tokenFile, exec
// (client.authentication.k8s.io v1 and v1beta1). `context` empty: current-context. Errors name the
// file and the entry.
absl::StatusOr<ClusterAccess> KubeconfigAccess(base::Clock& clock, const std::string& file,
                                               const std::string& context = "");

// As kubectl: `file` when given, else $KUBECONFIG (its first existing file), else in-cluster, else
// ~/.kube/config.
absl::StatusOr<ClusterAccess> DefaultAccess(base::Clock& clock, const std::string& file = "",
                                            const std::string& context = "");

}  // namespace hetero::kube
