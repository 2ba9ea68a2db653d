#include "operator/children/template_json.h"

#include <algorithm>

namespace hetero::children {

using nlohmann::json;

namespace {

const json& Member(const json& parent, const char* key, const json& otherwise) {
  if (!parent.is_object()) return otherwise;
  const auto found = parent.find(key);
  return found != parent.end() && found->type() == otherwise.type() ? *found : otherwise;
}

}  // namespace

json TemplateOf(const api::Role& role) {
  json parsed = json::parse(role.pod_template, nullptr, /*allow_exceptions=*/false);
  return parsed.is_object() ? parsed : json::object();
}

const json& ObjectAt(const json& parent, const char* key) {
  static const json& empty = *new json(json::object());
  return Member(parent, key, empty);
}

const json& ListAt(const json& parent, const char* key) {
  static const json& empty = *new json(json::array());
  return Member(parent, key, empty);
}

std::string TextAt(const json& parent, const char* key) {
  static const json& empty = *new json("");
  return Member(parent, key, empty).get<std::string>();
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
                     [&](const json& element) { return TextAt(element, key) == value; });
}

}  // namespace hetero::children
