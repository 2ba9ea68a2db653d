#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "api/peer_uri.h"
#include "base/clock.h"
#include "operator/children/children.h"

// Keys and certificates of a job (OpenSSL stays inside the .cpp). ECDSA P-256, valid from one hour
// ago: a job's own for ten years, since nobody can renew them, the operator's leaf for one.
namespace hetero::reconcile {

using api::kOperatorUri;
using api::RoleUri;

struct JobTrust {
  std::string ca_pem;  // its key is gone once this is made
  children::Leaf head, cpu_worker, gpu_worker;
};
absl::StatusOr<JobTrust> IssueJobTrust(const std::string& job_uid, base::WallTime now);

// How the operator shows itself to heads: a leaf with URI kOperatorUri and the authority that
// signed it. Jobs trust the authority for as long as they run, so it outlives its leaves: ten
// years, with its key kept. Nobody else is ever signed by it, so who holds the key can do no more
// than who holds the leaf's.
struct OperatorIdentity {
  std::string ca_pem;
  std::string ca_key_pem;
  children::Leaf leaf;
  base::WallTime expires;  // the leaf
};
absl::StatusOr<OperatorIdentity> IssueOperatorIdentity(base::WallTime now);
// Another leaf of the same authority; of a new one when the old one ends before the leaf would.
// kInvalidArgument: the authority's certificate and key cannot be read or do not belong together.
absl::StatusOr<OperatorIdentity> RenewOperatorIdentity(const OperatorIdentity& old,
                                                       base::WallTime now);

}  // namespace hetero::reconcile
