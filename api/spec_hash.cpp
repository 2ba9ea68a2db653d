#include "api/spec_hash.h"

#include <cstdint>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "api/fields.h"
#include "nlohmann/json.hpp"

namespace hetero::api {
namespace {

using nlohmann::json;

constexpr char kScheme[] = "1-";

// The value without all that is as it was initialised; null: nothing is left.
template <typename T>
json Essence(const T& value) {
  if constexpr (IsOptional<T>::value) {
    return value.has_value() ? Essence(*value) : json();
  } else if constexpr (IsVector<T>::value) {
    json list = json::array();
    for (const auto& element : value) list.push_back(Essence(element));
    return list;
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(NameOf(value));
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string> ||
                       std::is_same_v<T, StringMap>) {
    return value;
  } else {
    const T initial{};
    json object = json::object();
    ForEachField<T>([&](const auto& field) {
      json now = Essence(value.*(field.member));
      if (now != Essence(initial.*(field.member))) object[field.name] = std::move(now);
    });
    return object;
  }
}

// FNV-1a of 64 bits (http://www.isthe.com/chongo/tech/comp/fnv): the same in every build, which
// std::hash and absl::Hash are not. Nobody gains by a collision but over his own job.
uint64_t Fnv1a(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

}  // namespace

std::string SpecHash(const Spec& spec) {
  Spec fixed = spec;
  fixed.managed_by.clear();
  fixed.run_policy = {};
  fixed.autoscaling = Spec().autoscaling;
  for (Role& role : fixed.roles) {
    if (role.type != RoleType::kCpuWorker) continue;
    role.replicas = 0;
    role.min_replicas.reset();
    role.max_replicas.reset();
  }
  const std::string text =
      Essence(fixed).dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
  return absl::StrCat(kScheme, absl::Hex(Fnv1a(text), absl::kZeroPad16));
}

bool IsComparableSpecHash(std::string_view hash) { return hash.starts_with(kScheme); }

}  // namespace hetero::api
