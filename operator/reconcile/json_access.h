#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "api/job_status.h"
#include "base/clock.h"
#include "base/json_access.h"

// What the operator reads and writes of API objects besides base/json_access.h.
namespace hetero::reconcile {

using base::FieldOf;
using base::IntegerOf;
using base::IsTrue;
using base::ListOf;
using base::SmallIntegerOf;
using base::TextOf;

// Empty where there is no time in RFC 3339.
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
  return base::Absent();
}

}  // namespace hetero::reconcile
