#pragma once

#include <functional>
#include <memory>

#include "runtime/storage/aws/renewed_credentials.h"

namespace hetero::storage {

// The credentials of AWS's usual places, for all stores of this process that are open and look in
// the same ones: one of them asks, and renews, for all. Those are the same whose environments set
// AWS's variables alike. `make` gives the source when nobody has it yet. A child that fork() made
// has its own. `clock` outlives them. Thread-safe.
std::shared_ptr<RenewedCredentials> SharedCredentials(
    base::Clock& clock, const Environment& environment,
    const std::function<std::unique_ptr<CredentialSource>()>& make);

}  // namespace hetero::storage
