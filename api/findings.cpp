#include "api/findings.h"

#include <algorithm>

namespace hetero::api {

bool Findings::Broken(std::string_view path) const {
  return std::any_of(broken_.begin(), broken_.end(), [path](std::string_view broken) {
    if (!broken.starts_with(path)) return false;
    return broken.size() == path.size() || broken[path.size()] == '.' || broken[path.size()] == '[';
  });
}

}  // namespace hetero::api
