#include "runtime/train/models/tensor_names.h"

#include <fnmatch.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hetero::train {
namespace {

// The modules below the root, each once, in the order of their tensors.
std::vector<std::string> ModulesOf(const std::vector<std::string>& names) {
  std::vector<std::string> modules;
  for (const std::string& name : names) {
    const std::string module = name.substr(0, name.find('.'));
    if (std::find(modules.begin(), modules.end(), module) == modules.end()) {
      modules.push_back(module);
    }
  }
  return modules;
}

absl::Status NamesNothing(const std::string& entry, const std::string& pattern,
                          const std::vector<std::string>& names) {
  constexpr size_t kShown = 16;
  std::vector<std::string> modules = ModulesOf(names);
  const bool more = modules.size() > kShown;
  if (more) modules.resize(kShown);
  return absl::InvalidArgumentError(
      absl::StrCat(entry, ": \"", pattern, "\" names nothing in the model; it has ",
                   absl::StrJoin(modules, ", "), more ? " and more" : "", ", with names such as ",
                   names.empty() ? "" : names.front()));
}

}  // namespace

// The pattern has no other special character: the manifest's rules see to it.
bool NamesTensor(const std::string& pattern, const std::string& name) {
  for (size_t end = name.find('.'); end != std::string::npos; end = name.find('.', end + 1)) {
    if (fnmatch(pattern.c_str(), name.substr(0, end).c_str(), 0) == 0) return true;
  }
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

absl::Status ChooseTensors(const std::string& field, const std::vector<std::string>& patterns,
                           const std::vector<std::string>& names,
                           const std::function<void(size_t)>& chosen) {
  for (size_t i = 0; i < patterns.size(); ++i) {
    bool any = false;
    for (size_t k = 0; k < names.size(); ++k) {
      if (!NamesTensor(patterns[i], names[k])) continue;
      any = true;
      chosen(k);
    }
    if (!any) return NamesNothing(absl::StrCat(field, "[", i, "]"), patterns[i], names);
  }
  return absl::OkStatus();
}

}  // namespace hetero::train
