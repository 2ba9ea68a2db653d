#pragma once

#include <string>

#include "absl/status/status.h"

// Internal to base/tls.
namespace hetero::base {

// Whether a client's certificate (PEM, leaf first; what else is in `chain_pem` may lie between)
// leads to one of the authorities in `ca_pem` at this moment and may be used by a client. Otherwise
// kUnauthenticated with the reason in words.
absl::Status CheckClientChain(const std::string& leaf_pem, const std::string& chain_pem,
                              const std::string& ca_pem);

}  // namespace hetero::base
