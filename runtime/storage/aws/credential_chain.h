#pragma once

#include <memory>
#include <vector>

#include "runtime/storage/aws/credential_services.h"
#include "runtime/storage/aws/credentials.h"

namespace hetero::storage {

// Asks one source after the other until one is set up, and that one alone from then on. When none
// is, an error that says where was looked.
std::unique_ptr<CredentialSource> CredentialChain(
    std::vector<std::unique_ptr<CredentialSource>> sources);

// The order of AWS's SDK for C++: environment, profile, web identity, container (EKS Pod Identity),
// EC2 instance.
std::unique_ptr<CredentialSource> UsualCredentials(const CredentialServices& services);

// No credentials: requests are not signed, as public buckets take them.
std::unique_ptr<CredentialSource> AnonymousCredentials();

}  // namespace hetero::storage
