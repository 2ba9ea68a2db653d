#pragma once

#include "tests/integration/operator/support/world.h"

// Jobs whose roles have prices, and what their status says that they have cost.
namespace hetero::testing {

inline double DollarsOf(const json& status) {
  return status.value("cost", json::object()).value("dollars", -1.0);
}
inline double DoubtOf(const json& status) {
  return status.value("cost", json::object()).value("uncertainDollars", 0.0);
}

inline constexpr double kHead = 36, kCpu = 360, kGpu = 3600;  // dollars an hour; a GPU second: 1

inline double PriceOfRole(const std::string& role) {
  return role == "head" ? kHead : role == "cpu" ? kCpu : kGpu;
}

inline json PricedJob(const std::string& name, const json& script) {
  json job = MakeJob(name, script);
  RoleOf(job, "head")["pricePerHour"] = "36";
  RoleOf(job, "cpu")["pricePerHour"] = "360";
  RoleOf(job, "gpu")["pricePerHour"] = "3600";
  return job;
}

}  // namespace hetero::testing
