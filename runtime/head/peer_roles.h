#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/tls.h"

namespace grpc {
class AuthContext;
}

namespace hetero::head {

// As whom a caller of the join port may speak, by the URI of its certificate. A worker that was
// taken over has its own certificate and no other: it must not speak as a trainer. A value type;
// thread-safe.
class PeerRoles {
 public:
  // Of a port that is protected by `tls`. In plain text, and where peers are not told by URI,
  // everybody may speak as anybody.
  explicit PeerRoles(const base::TlsOptions& tls);

  // The URIs of this job that the caller has shown in the handshake; empty also where none are
  // asked for.
  std::vector<std::string> Shown(const grpc::AuthContext& context) const;
  // kPermissionDenied names the certificate that is not one of a `role_type` (api/role_type.h), and
  // what was wanted with it: "to join as gpu-0".
  absl::Status Check(const std::vector<std::string>& shown, const std::string& role_type,
                     const std::string& wish) const;

 private:
  bool told_by_uri_ = false;
  std::vector<std::string> uris_;  // of the job's workers
};

}  // namespace hetero::head
