#pragma once

#include <string>

#include "api/hetero_training_job.h"

namespace hetero::children {

// The keys of the per-job Secret: "cpuworker.crt" and "cpuworker.key".
std::string CertificateKey(api::RoleType type);
std::string PrivateKeyKey(api::RoleType type);

}  // namespace hetero::children
