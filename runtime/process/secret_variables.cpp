#include "runtime/process/secret_variables.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "api/process_environment.h"
#include "base/non_dumpable.h"

namespace hetero::process {

bool IsSecretVariable(std::string_view name) {
  static constexpr std::string_view kOfStores[] = {"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
                                                   "AWS_CONTAINER_AUTHORIZATION_TOKEN"};
  return name.starts_with(api::environment::kStorage) ||
         std::find(std::begin(kOfStores), std::end(kOfStores), name) != std::end(kOfStores);
}

void ProtectSecretVariables() {
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (IsSecretVariable(text.substr(0, text.find('=')))) base::MakeNonDumpable();
  }
}

}  // namespace hetero::process
