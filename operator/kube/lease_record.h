#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/clock.h"

namespace hetero::kube {

// The part of a coordination.k8s.io Lease that an election reads and writes.
struct LeaseRecord {
  std::string holder;  // empty: nobody
  base::Duration duration{};
  int64_t transitions = 0;
  std::string acquire_time;
};

// Of a lease of any shape; a duration that is missing or below a second is `default_duration`.
LeaseRecord LeaseRecordOf(const nlohmann::json& lease, base::Duration default_duration);

// The spec of a lease with this record, renewed at `now`.
nlohmann::json LeaseSpec(const LeaseRecord& record, const std::string& now);

}  // namespace hetero::kube
