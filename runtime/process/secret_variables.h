#pragma once

#include <string_view>

namespace hetero::process {

// Whether a variable of this name holds a secret: AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN,
// AWS_CONTAINER_AUTHORIZATION_TOKEN or one of spec.storage's secretRef (HETERO_STORAGE_...).
bool IsSecretVariable(std::string_view name);

// base::MakeNonDumpable() where this process has such a variable. First in main(): until then
// everybody of this user reads it in /proc/<pid>/environ, and a child that was made before keeps a
// copy. Secrets from elsewhere: whoever opens a bucket (storage::OpenStore()) does the same before
// it reads one.
void ProtectSecretVariables();

}  // namespace hetero::process
