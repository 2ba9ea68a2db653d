#pragma once

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "operator/kube/client.h"
#include "operator/reconcile/certificates.h"

// The certificate that the operator shows to heads. It stands in one Secret of the operator's own
// namespace, the only one it may read, so that its replicas and its next process are the same peer:
// running jobs trust the authority in it.
namespace hetero::program {

// Before it expires, so that jobs which began with it have this long to end.
inline constexpr std::chrono::hours kRenewBefore{30 * 24};

// Reads the Secret; makes it when it is missing, renews it when it expires within kRenewBefore.
// Others may do the same at the same time: the first one wins, the rest read what it wrote. Errors
// name the Secret and the remedy.
absl::StatusOr<reconcile::OperatorIdentity> LoadOperatorIdentity(kube::Client& client,
                                                                 base::Clock& clock,
                                                                 const kube::ObjectKey& secret);

// The Secret: tls.crt, tls.key, ca.crt and, as an annotation, when it expires; and back.
nlohmann::json IdentityToSecret(const kube::ObjectKey& key,
                                const reconcile::OperatorIdentity& identity);
absl::StatusOr<reconcile::OperatorIdentity> IdentityFromSecret(const nlohmann::json& secret);

}  // namespace hetero::program
