#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// What a table of manifest fields is made of (fields.h holds the tables). One row per field serves
// decoding, encoding, overrides and the comparison with crds/. Internal to api.
namespace hetero::api {

enum class Presence {
  kRequired,   // must be given
  kOptional,   // absent is an empty optional, string, list or map
  kDefaulted,  // absent is the member's initial value, which is the schema's default
};

// What the OpenAPI schema says about one field, beyond its type. Numbers: `min` and `max`; they
// hold for both ends of a Range and for every number of a list. Strings: `max_length`, `pattern`
// (RE2 and ECMAScript alike), `only` (the single allowed value). Lists and maps: `min_items`,
// `max_items`; `max_length` is that of each value of a map. `max_added_items` is no part of the
// schema: so many more may be in the document that the operator gives to a job's programs.
struct Limits {
  Presence presence = Presence::kOptional;
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;  // min itself is excluded
  bool below_max = false;  // max itself is excluded
  int min_items = 0;
  int max_items = 0;  // 0: not a list or map
  int max_added_items = 0;
  int max_length = 0;
  const char* pattern = nullptr;
  const char* only = nullptr;
  bool open_object = false;   // any object, kept as compact JSON text
  bool may_be_empty = false;  // strings: "" is a value
};

template <typename Owner, typename Member>
struct Field {
  const char* name;
  Member Owner::*member;
  Limits limits;
};

template <typename Owner, typename Member>
constexpr Field<Owner, Member> F(const char* name, Member Owner::*member, Limits limits = {}) {
  return {name, member, limits};
}

// Names of an enum's values in the manifest; specialised in enums.h, with the pairs
// (value, name) in `Values()`.
template <typename E>
struct EnumNames;

template <typename E>
std::vector<std::string> AllNames() {
  std::vector<std::string> names;
  for (const auto& [value, name] : EnumNames<E>::Values()) names.emplace_back(name);
  return names;
}

template <typename E>
std::string_view NameOf(E wanted) {
  for (const auto& [value, name] : EnumNames<E>::Values()) {
    if (value == wanted) return name;
  }
  return {};
}

template <typename E>
std::optional<E> ValueNamed(std::string_view wanted) {
  for (const auto& [value, name] : EnumNames<E>::Values()) {
    if (name == wanted) return value;
  }
  return std::nullopt;
}

template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};

// A struct with a table, always there. Optional in the manifest, it is absent while all its fields
// are as initialised.
template <typename T>
concept IsPlainObject =
    std::is_class_v<T> && !IsOptional<T>::value && !IsVector<T>::value &&
    !std::is_same_v<T, std::string> && !std::is_same_v<T, std::map<std::string, std::string>>;

using StringMap = std::map<std::string, std::string>;

// Calls `visit(field)` for every row of T's table, in order.
template <typename T, typename Visit>
void ForEachField(Visit&& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); },
             FieldsOf(static_cast<const T*>(nullptr)));
}

// `parent.name`, or `name` at the root.
inline std::string Child(const std::string& parent, std::string_view name) {
  return parent.empty() ? std::string(name) : parent + "." + std::string(name);
}

inline std::string Element(const std::string& list, size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

}  // namespace hetero::api
