#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "operator/children/children.h"

// Keys and certificates of a job (OpenSSL stays inside the .cpp). ECDSA P-256, valid one year from
// one hour ago.
namespace hetero::reconcile {

// The URI that names a peer: hetero://<job uid>/<role type>, or hetero://operator.
std::string RoleUri(const std::string& job_uid, const std::string& role_type);
inline constexpr char kOperatorUri[] = "hetero://operator";

struct JobTrust {
  std::string ca_pem;  // its key is gone once this is made
  children::Leaf head, cpu_worker, gpu_worker;
};
absl::StatusOr<JobTrust> IssueJobTrust(const std::string& job_uid, base::WallTime now);

// An authority and a leaf with URI kOperatorUri: how the operator shows itself to heads.
struct OperatorIdentity {
  std::string ca_pem;
  children::Leaf leaf;
  base::WallTime expires;
};
absl::StatusOr<OperatorIdentity> IssueOperatorIdentity(base::WallTime now);

}  // namespace hetero::reconcile
