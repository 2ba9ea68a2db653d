#include "runtime/agent/passed_files.h"

#include <algorithm>
#include <utility>

namespace hetero::agent {

PassedFiles::Passed PassedFiles::Pass(std::shared_ptr<const feed::MemoryFile> file) {
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const Known& known) { return known.file == file; });
  if (found != known_.end()) return {.number = found->number};
  known_.push_back({.number = ++last_, .file = std::move(file)});
  return {.number = last_, .is_new = true};
}

std::vector<int64_t> PassedFiles::Forget() {
  std::vector<int64_t> forgotten;
  std::erase_if(known_, [&](const Known& known) {
    if (known.file.use_count() > 1) return false;
    forgotten.push_back(known.number);
    return true;
  });
  return forgotten;
}

}  // namespace hetero::agent
