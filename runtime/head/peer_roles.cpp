#include "runtime/head/peer_roles.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hetero::head {

PeerRoles::PeerRoles(const base::TlsOptions& tls)
    : told_by_uri_(!tls.plain_text && !tls.peer_uris.empty()), uris_(tls.peer_uris) {}

std::vector<std::string> PeerRoles::Shown(const grpc::AuthContext& context) const {
  std::vector<std::string> shown;
  if (!told_by_uri_) return shown;
  for (const grpc::string_ref& value : context.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    std::string uri(value.data(), value.size());
    if (std::find(uris_.begin(), uris_.end(), uri) != uris_.end()) shown.push_back(std::move(uri));
  }
  return shown;
}

absl::Status PeerRoles::Check(const std::vector<std::string>& shown, const std::string& role_type,
                              const std::string& wish) const {
  if (!told_by_uri_) return absl::OkStatus();
  const bool allowed = std::any_of(shown.begin(), shown.end(), [&](const std::string& uri) {
    return absl::EndsWith(uri, absl::StrCat("/", role_type));
  });
  if (allowed) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "a certificate of type ", role_type, " is needed ", wish, ", and this one is of ",
      shown.empty() ? "nobody of this job" : absl::StrJoin(shown, " and ")));
}

}  // namespace hetero::head
