#pragma once

#include <cmath>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "api/status_fields.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

// Status values <-> JSON by the tables of status_fields.h. Unlike a manifest, a status is
// written by one program and read by others, perhaps older ones: writing keeps every limit of the
// schema (or the API server would refuse the whole status), reading skips what it does not know.
// Internal to api.
namespace hetero::api {

template <typename T>
nlohmann::json EncodeStatusObject(const T& value);

// `text` without the end that exceeds `max_bytes`, never cut inside a character.
std::string Shortened(std::string text, size_t max_bytes);

template <typename T>
nlohmann::json EncodeStatusValue(const T& value, const Limits& limits) {
  using nlohmann::json;
  if constexpr (IsOptional<T>::value) {
    return value.has_value() ? EncodeStatusValue(*value, limits) : json();
  } else if constexpr (IsVector<T>::value) {
    json list = json::array();
    for (const auto& element : value) {
      if (list.size() == static_cast<size_t>(limits.max_items)) break;
      list.push_back(EncodeStatusValue(element, limits));
    }
    return list.empty() ? json() : list;
  } else if constexpr (std::is_same_v<T, base::WallTime>) {
    if (value == base::WallTime() && limits.presence != Presence::kRequired) return json();
    return FormatTime(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (value.empty() && limits.presence != Presence::kRequired) return json();
    return Shortened(value, limits.max_length);
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(NameOf(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isfinite(value) ? json(value) : json();  // JSON has no other numbers
  } else if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else {
    return EncodeStatusObject(value);
  }
}

template <typename T>
nlohmann::json EncodeStatusObject(const T& value) {
  nlohmann::json object = nlohmann::json::object();
  ForEachField<T>([&](const auto& field) {
    nlohmann::json encoded = EncodeStatusValue(value.*(field.member), field.limits);
    if (!encoded.is_null()) object[field.name] = std::move(encoded);
  });
  return object;
}

template <typename T>
absl::Status DecodeStatusObject(const nlohmann::json& json, const std::string& path, T& value);
template <typename T>
absl::Status DecodeStatusValue(const nlohmann::json& json, const std::string& path, T& value);

inline absl::Status StatusFieldError(const std::string& path, const char* expected,
                                     const nlohmann::json& found) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": expected ", expected, ", found ", found.type_name()));
}

template <typename T>
absl::Status DecodeInteger(const nlohmann::json& json, const std::string& path, T& value) {
  if (!json.is_number_integer()) return StatusFieldError(path, "an integer", json);
  const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<uint64_t>())
                                              : std::in_range<T>(json.get<int64_t>());
  if (!fits) return absl::InvalidArgumentError(absl::StrCat(path, ": integer out of range"));
  value = json.get<T>();
  return absl::OkStatus();
}

template <typename T>
absl::Status DecodeStatusList(const nlohmann::json& json, const std::string& path,
                              std::vector<T>& list) {
  if (!json.is_array()) return StatusFieldError(path, "a list", json);
  for (size_t i = 0; i < json.size(); ++i) {
    if constexpr (std::is_same_v<T, Condition>) {
      const auto type = json[i].is_object() ? json[i].find("type") : json[i].end();
      const bool unknown = json[i].is_object() && type != json[i].end() && type->is_string() &&
                           !ConditionTypeOf(type->template get_ref<const std::string&>());
      if (unknown) continue;
    }
    HETERO_RETURN_IF_ERROR(DecodeStatusValue(json[i], Element(path, i), list.emplace_back()));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status DecodeStatusValue(const nlohmann::json& json, const std::string& path, T& value) {
  if constexpr (IsOptional<T>::value) {
    return DecodeStatusValue(json, path, value.emplace());
  } else if constexpr (IsVector<T>::value) {
    return DecodeStatusList(json, path, value);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!json.is_number()) return StatusFieldError(path, "a number", json);
    value = json.get<T>();
    return absl::OkStatus();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) return StatusFieldError(path, "true or false", json);
    value = json.get<bool>();
    return absl::OkStatus();
  } else if constexpr (std::is_integral_v<T>) {
    return DecodeInteger(json, path, value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!json.is_string()) return StatusFieldError(path, "a string", json);
    value = json.get_ref<const std::string&>();
    return absl::OkStatus();
  } else if constexpr (std::is_same_v<T, base::WallTime>) {
    if (!json.is_string()) return StatusFieldError(path, "a time", json);
    absl::StatusOr<base::WallTime> time = ParseTime(json.get_ref<const std::string&>());
    if (!time.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": ", time.status().message()));
    }
    value = *time;
    return absl::OkStatus();
  } else if constexpr (std::is_enum_v<T>) {
    if (!json.is_string()) return StatusFieldError(path, "a string", json);
    const std::optional<T> named = ValueNamed<T>(json.get_ref<const std::string&>());
    if (!named) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": unknown value \"", json.get_ref<const std::string&>(), "\""));
    }
    value = *named;
    return absl::OkStatus();
  } else {
    return DecodeStatusObject(json, path, value);
  }
}

template <typename T>
absl::Status DecodeStatusObject(const nlohmann::json& json, const std::string& path, T& value) {
  if (!json.is_object()) return StatusFieldError(path, "an object", json);
  absl::Status status;
  ForEachField<T>([&](const auto& field) {
    const auto found = json.find(field.name);
    if (!status.ok() || found == json.end() || found->is_null()) return;
    status = DecodeStatusValue(*found, Child(path, field.name), value.*(field.member));
  });
  return status;
}

}  // namespace hetero::api
