#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <stop_token>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "operator/kube/client.h"
#include "operator/reconcile/certificates.h"

// The certificate that the operator shows to heads. It stands in one Secret of the operator's own
// namespace, the only one it may read, so that its replicas and its next process are the same peer:
// running jobs trust the authority in it.
namespace hetero::program {

// Before the certificate expires: time for somebody to see why it could not be done.
inline constexpr std::chrono::hours kRenewBefore{30 * 24};

// Reads the Secret; makes it when it is missing, renews it when it expires within kRenewBefore:
// with the same authority, so that running jobs notice nothing. One without the authority's key, as
// the first versions wrote it, is recreated. Others may do the same at the same time: the first one
// wins, the rest read what it wrote. Errors name the Secret and the remedy.
absl::StatusOr<reconcile::OperatorIdentity> LoadOperatorIdentity(kube::Client& client,
                                                                 base::Clock& clock,
                                                                 const kube::ObjectKey& secret);

// Calls `load` until it gives an identity, with growing pauses of up to 30 s while the API server
// is away or overloaded. Any other error ends it; so does stop (kCancelled).
absl::StatusOr<reconcile::OperatorIdentity> AwaitOperatorIdentity(
    const std::function<absl::StatusOr<reconcile::OperatorIdentity>()>& load, base::Clock& clock,
    std::stop_token stop);

// The Secret: tls.crt, tls.key, ca.crt, ca.key and, as an annotation, when tls.crt expires; and
// back. ca.key may be missing.
nlohmann::json IdentityToSecret(const kube::ObjectKey& key,
                                const reconcile::OperatorIdentity& identity);
absl::StatusOr<reconcile::OperatorIdentity> IdentityFromSecret(const nlohmann::json& secret);

}  // namespace hetero::program
