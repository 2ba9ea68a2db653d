#include "runtime/process/python.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/operators.h"
#include "runtime/process/foreign_environment.h"
#include "runtime/process/secret_variables.h"

namespace hetero::process {

absl::StatusOr<std::unique_ptr<interpreter::Interpreters>> StartPython(
    const api::Spec& spec, const std::vector<std::string>& folders, const std::stop_token& stop) {
  if (!api::HasPython(spec.pipeline)) return nullptr;
  interpreter::Interpreters::Options options;
  std::vector<std::string>& environment = options.host.environment;
  environment = ForeignEnvironment();
  std::erase_if(environment, [](const std::string& one) {
    return IsSecretVariable(std::string_view(one).substr(0, one.find('=')));
  });
  const auto set = [&environment](const char* name, const char* value) {
    const std::string setting = absl::StrCat(name, "=");
    std::erase_if(environment, [&](const std::string& one) { return one.starts_with(setting); });
    environment.push_back(absl::StrCat(setting, value));
  };
  // There is an interpreter for each core: libraries of one must not take the others' cores.
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}) {
    set(name, "1");
  }
  set("PYTHONHASHSEED", "0");  // sets have one order in all workers
  options.host.folders = folders;
  options.verifies = spec.verify != api::Verification::kDisabled;
  return interpreter::Interpreters::Start(spec.pipeline, std::move(options), base::Clock::Real(),
                                          stop);
}

}  // namespace hetero::process
