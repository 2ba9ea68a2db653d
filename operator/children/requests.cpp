#include "operator/children/requests.h"

#include <algorithm>

#include "base/json_access.h"
#include "operator/children/resource_sum.h"

namespace hetero::children {
namespace {

constexpr double kBillion = 1e9;

}  // namespace

Resources RequestsOf(const nlohmann::json& spec) {
  ResourceSum sum;
  sum.AddPods(spec, 1);
  return ResourcesOf(sum.ToJson());
}

Resources ResourcesOf(const nlohmann::json& list) {
  Resources resources;
  if (!list.is_object()) return resources;
  for (const auto& [name, value] : list.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    resources[name] = static_cast<double>(ParseQuantity(text)) / kBillion;
  }
  return resources;
}

double DominantShare(const Resources& part, const Resources& whole) {
  double share = 0;
  for (const auto& [name, amount] : part) {
    const auto has = whole.find(name);
    if (has != whole.end() && has->second > 0) share = std::max(share, amount / has->second);
  }
  return std::clamp(share, 0.0, 1.0);
}

}  // namespace hetero::children
