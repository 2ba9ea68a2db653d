#include "runtime/process/secret_variables.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "api/process_environment.h"
#include "base/non_dumpable.h"

namespace hetero::process {

void ProtectSecretVariables() {
  for (const char* name :
       {"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN"}) {
    if (std::getenv(name) != nullptr) base::MakeNonDumpable();
  }
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (std::string_view(*variable).starts_with(api::environment::kStorage)) {
      base::MakeNonDumpable();
    }
  }
}

}  // namespace hetero::process
