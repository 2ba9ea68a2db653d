#include "operator/children/template_json.h"

#include <algorithm>

#include "base/json_access.h"

namespace hetero::children {

using nlohmann::json;

json TemplateOf(const api::Role& role) {
  json parsed = json::parse(role.pod_template, nullptr, /*allow_exceptions=*/false);
  return parsed.is_object() ? parsed : json::object();
}

json& MutableObject(json& parent, const char* key) {
  json& member = parent[key];
  if (!member.is_object()) member = json::object();
  return member;
}

json& MutableList(json& parent, const char* key) {
  json& member = parent[key];
  if (!member.is_array()) member = json::array();
  return member;
}

void SetDefault(json& object, const char* key, json value) {
  json& member = object[key];
  if (member.is_null()) member = std::move(value);
}

bool Lists(const json& list, const char* key, const std::string& value) {
  return std::any_of(list.begin(), list.end(),
                     [&](const json& element) { return base::TextOf(element, key) == value; });
}

}  // namespace hetero::children
