#pragma once

#include <string>

#include "api/hetero_training_job.h"

namespace hetero::children {

// "CPUWorker", as in the manifest, in HETERO_ROLE_TYPE and in the certificates' URIs.
std::string RoleTypeName(api::RoleType type);

// The keys of the per-job Secret: "cpuworker.crt" and "cpuworker.key".
std::string CertificateKey(api::RoleType type);
std::string PrivateKeyKey(api::RoleType type);

}  // namespace hetero::children
