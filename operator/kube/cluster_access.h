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
  std::string act_as;                  // user whose rights are asked for; empty: one's own
  std::shared_ptr<CredentialSource> credentials;
};

// Where Kubernetes mounts a pod's service account.
inline constexpr char kServiceAccountFolder[] = "/var/run/secrets/kubernetes.io/serviceaccount";

// From the files under `folder` and KUBERNETES_SERVICE_HOST and _PORT; kFailedPrecondition outside
// a pod.
absl::StatusOr<ClusterAccess> InClusterAccess(base::Clock& clock,
                                              const std::string& folder = kServiceAccountFolder);

// Kubeconfig files: certificate and key as data or files, token, tokenFile, exec
// (client.authentication.k8s.io v1 and v1beta1). Of several, the first that has a context, cluster
// or user of a name, or a current-context, is the one that counts for it. `context` empty: the
// current one. Errors name the file, or all of them, and the entry.
absl::StatusOr<ClusterAccess> KubeconfigAccess(base::Clock& clock,
                                               const std::vector<std::string>& files,
                                               const std::string& context = "");
inline absl::StatusOr<ClusterAccess> KubeconfigAccess(base::Clock& clock, const std::string& file,
                                                      const std::string& context = "") {
  return KubeconfigAccess(clock, std::vector<std::string>{file}, context);
}

// As kubectl, inside a pod too: `file` when given, else the files of $KUBECONFIG that exist,
// merged, else ~/.kube/config, else the pod's service account. A `context` is never passed over:
// without a kubeconfig to find it in it is an error, as is a KUBECONFIG none of whose files exists.
// Errors say what was looked at.
absl::StatusOr<ClusterAccess> DefaultAccess(
    base::Clock& clock, const std::string& file = "", const std::string& context = "",
    const std::string& service_account = kServiceAccountFolder);

}  // namespace hetero::kube
