#pragma once

#include <type_traits>

#include "api/fields.h"
#include "nlohmann/json.hpp"

// Types -> JSON by the tables of fields.h: required and defaulted fields always, optional ones when
// they have a value.
namespace hetero::api {

template <typename T>
nlohmann::json EncodeObject(const T& value);

template <typename T>
nlohmann::json EncodeValue(const T& value, const Limits& limits) {
  using nlohmann::json;
  if constexpr (IsOptional<T>::value) {
    return value.has_value() ? EncodeValue(*value, limits) : json();
  } else if constexpr (IsVector<T>::value) {
    json list = json::array();
    for (const auto& element : value) list.push_back(EncodeValue(element, limits));
    return list;
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!limits.open_object) return value;
    return value.empty() ? json() : json::parse(value, nullptr, /*allow_exceptions=*/false);
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(NameOf(value));
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, StringMap>) {
    return value;
  } else {
    return EncodeObject(value);
  }
}

template <typename T>
bool IsAbsent(const T& value) {
  if constexpr (IsOptional<T>::value) {
    return !value.has_value();
  } else if constexpr (IsVector<T>::value || std::is_same_v<T, std::string> ||
                       std::is_same_v<T, StringMap>) {
    return value.empty();
  } else {
    return false;
  }
}

template <typename T>
nlohmann::json EncodeObject(const T& value) {
  nlohmann::json object = nlohmann::json::object();
  ForEachField<T>([&](const auto& field) {
    const auto& member = value.*(field.member);
    if (IsAbsent(member)) return;
    nlohmann::json encoded = EncodeValue(member, field.limits);
    if constexpr (IsPlainObject<std::remove_cvref_t<decltype(member)>>) {
      if (field.limits.presence == Presence::kOptional && encoded.empty()) return;
    }
    object[field.name] = std::move(encoded);
  });
  return object;
}

}  // namespace hetero::api
