#include "runtime/insight/live/merge_patch.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace hetero::live {

using nlohmann::json;

json MergePatch(const json& before, const json& after) {
  json patch = json::object();
  for (const auto& [key, value] : before.items()) {
    if (!after.contains(key)) patch[key] = nullptr;
  }
  for (const auto& [key, value] : after.items()) {
    const auto known = before.find(key);
    if (known == before.end()) {
      patch[key] = value;
    } else if (known->is_object() && value.is_object()) {
      json inner = MergePatch(*known, value);
      if (!inner.empty()) patch[key] = std::move(inner);
    } else if (*known != value) {
      patch[key] = value;
    }
  }
  return patch;
}

}  // namespace hetero::live
