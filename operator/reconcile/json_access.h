#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "api/job_status.h"
#include "base/clock.h"

// Reading objects of the API that may have any shape: what is missing or of the wrong type gives
// the type's empty value.
namespace hetero::reconcile {

inline const nlohmann::json& Absent() {
  static const nlohmann::json& absent = *new nlohmann::json();
  return absent;
}

// The field of an object; a null value when there is none.
inline const nlohmann::json& FieldOf(const nlohmann::json& object, const char* name) {
  if (!object.is_object()) return Absent();
  const auto it = object.find(name);
  return it == object.end() ? Absent() : *it;
}

// An array's elements; an empty array for anything else.
inline const nlohmann::json& ListOf(const nlohmann::json& object, const char* name) {
  static const nlohmann::json& empty = *new nlohmann::json(nlohmann::json::array());
  const nlohmann::json& field = FieldOf(object, name);
  return field.is_array() ? field : empty;
}

inline std::string TextOf(const nlohmann::json& object, const char* name) {
  const nlohmann::json& field = FieldOf(object, name);
  return field.is_string() ? field.get_ref<const std::string&>() : std::string();
}

inline bool IsTrue(const nlohmann::json& object, const char* name) {
  const nlohmann::json& field = FieldOf(object, name);
  return field.is_boolean() && field.get<bool>();
}

inline int64_t IntegerOf(const nlohmann::json& object, const char* name) {
  const nlohmann::json& field = FieldOf(object, name);
  if (field.is_number_unsigned()) {
    const auto number = field.get<uint64_t>();
    return number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
               ? 0
               : static_cast<int64_t>(number);
  }
  return field.is_number_integer() ? field.get<int64_t>() : 0;
}

inline int32_t SmallIntegerOf(const nlohmann::json& object, const char* name) {
  const int64_t number = IntegerOf(object, name);
  const bool fits = number >= std::numeric_limits<int32_t>::min() &&
                    number <= std::numeric_limits<int32_t>::max();
  return fits ? static_cast<int32_t>(number) : 0;
}

inline std::optional<base::WallTime> TimeOf(const nlohmann::json& object, const char* name) {
  const nlohmann::json& field = FieldOf(object, name);
  if (!field.is_string()) return std::nullopt;
  const absl::StatusOr<base::WallTime> time = api::ParseTime(field.get_ref<const std::string&>());
  return time.ok() ? std::optional(*time) : std::nullopt;
}

// Text of any value; invalid UTF-8 is replaced.
inline std::string Dump(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The ownerReference whose `controller` is true; null when there is none.
inline const nlohmann::json& ControllerOf(const nlohmann::json& object) {
  for (const nlohmann::json& owner : ListOf(FieldOf(object, "metadata"), "ownerReferences")) {
    if (IsTrue(owner, "controller")) return owner;
  }
  return Absent();
}

}  // namespace hetero::reconcile
