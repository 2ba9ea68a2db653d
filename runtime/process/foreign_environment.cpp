#include "runtime/process/foreign_environment.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "api/process_environment.h"

namespace hetero::process {

namespace environment = api::environment;

bool IsForUsAlone(std::string_view variable_name) {
  static constexpr const char* kNames[] = {
      environment::kRole,        environment::kRoleType,     environment::kIndex,
      environment::kAttempt,     environment::kIncarnation,  environment::kLocalRank,
      environment::kHeadAddress, environment::kPodIp,        environment::kNodeName,
      environment::kHistory,     environment::kLastWords,    environment::kTerminationLog,
      environment::kParentPid,   environment::kAttemptCause, environment::kCpuRequestMillicores,
      environment::kMaxDollars};
  return variable_name.starts_with(environment::kTls) ||
         variable_name.starts_with(environment::kStorage) ||
         std::find(std::begin(kNames), std::end(kNames), variable_name) != std::end(kNames);
}

std::vector<std::string> ForeignEnvironment() {
  std::vector<std::string> variables;
  std::string preload;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    if (name == environment::kScriptPreload) {
      preload = text.substr(std::min(text.size(), name.size() + 1));
    } else if (!IsForUsAlone(name)) {
      variables.emplace_back(text);
    }
  }
  if (!preload.empty()) variables.push_back(absl::StrCat("LD_PRELOAD=", preload));
  return variables;
}

}  // namespace hetero::process
