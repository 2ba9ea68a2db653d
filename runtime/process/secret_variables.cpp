#include "runtime/process/secret_variables.h"

#include <cstdlib>

#include "base/non_dumpable.h"

namespace hetero::process {

void ProtectSecretVariables() {
  for (const char* name :
       {"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN"}) {
    if (std::getenv(name) != nullptr) base::MakeNonDumpable();
  }
}

}  // namespace hetero::process
