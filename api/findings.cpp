#include "api/findings.h"

#include <algorithm>

namespace hetero::api {

namespace {

// Whether `inner` is `outer` or inside it.
bool Within(std::string_view inner, std::string_view outer) {
  if (!inner.starts_with(outer)) return false;
  return inner.size() == outer.size() || inner[outer.size()] == '.' || inner[outer.size()] == '[';
}

}  // namespace

bool Findings::Broken(std::string_view path) const {
  return std::any_of(broken_.begin(), broken_.end(),
                     [path](std::string_view broken) { return Within(broken, path); });
}

bool Findings::Unread(std::string_view path) const {
  return std::any_of(broken_.begin(), broken_.end(),
                     [path](std::string_view broken) { return Within(path, broken); });
}

}  // namespace hetero::api
