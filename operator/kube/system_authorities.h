#pragma once

#include <openssl/ssl.h>

#include <optional>
#include <string>
#include <vector>

namespace hetero::kube {

// The value of SSL_CERT_FILE before KeepSystemAuthoritiesFromCpprest() (rest_transport.h) changed
// it, empty when it was not set; nothing when it was not changed.
const std::optional<std::string>& HiddenCertificateFile();

// This process's environment as it was given: for programs that it starts. "NAME=VALUE" each.
std::vector<std::string> EnvironmentForPrograms();

// Lets `context` trust the system's authorities, hidden or not.
void TrustSystemAuthorities(SSL_CTX* context);

}  // namespace hetero::kube
