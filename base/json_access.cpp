#include "base/json_access.h"

#include <limits>

namespace hetero::base {

using nlohmann::json;

const json& Absent() {
  static const json& absent = *new json();
  return absent;
}

const json& FieldOf(const json& object, std::string_view name) {
  if (!object.is_object()) return Absent();
  const auto found = object.find(name);
  return found == object.end() ? Absent() : *found;
}

const json& ObjectOf(const json& object, std::string_view name) {
  static const json& empty = *new json(json::object());
  const json& field = FieldOf(object, name);
  return field.is_object() ? field : empty;
}

const json& ListOf(const json& object, std::string_view name) {
  static const json& empty = *new json(json::array());
  const json& field = FieldOf(object, name);
  return field.is_array() ? field : empty;
}

std::string TextOf(const json& object, std::string_view name) {
  const json& field = FieldOf(object, name);
  return field.is_string() ? field.get<std::string>() : "";
}

bool IsTrue(const json& object, std::string_view name) {
  const json& field = FieldOf(object, name);
  return field.is_boolean() && field.get<bool>();
}

int64_t IntegerOf(const json& object, std::string_view name) {
  const json& field = FieldOf(object, name);
  if (field.is_number_unsigned()) {
    const auto number = field.get<uint64_t>();
    return number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
               ? 0
               : static_cast<int64_t>(number);
  }
  return field.is_number_integer() ? field.get<int64_t>() : 0;
}

int32_t SmallIntegerOf(const json& object, std::string_view name) {
  const int64_t number = IntegerOf(object, name);
  const bool fits = number >= std::numeric_limits<int32_t>::min() &&
                    number <= std::numeric_limits<int32_t>::max();
  return fits ? static_cast<int32_t>(number) : 0;
}

}  // namespace hetero::base
