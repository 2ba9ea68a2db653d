#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

// What nodes cost, as an administrator says it once for a cluster.
namespace hetero::api {

struct NodePrice {
  int64_t paid = 0;       // micro-dollars per hour
  int64_t on_demand = 0;  // what it would cost if it could not be taken away at any time
  bool operator==(const NodePrice&) const = default;
};

struct PriceSheet {
  struct Entry {
    std::optional<int64_t> on_demand;  // micro-dollars per hour
    std::optional<int64_t> spot;
  };
  std::map<std::string, Entry> instance_types;
  std::string region;  // for people
  std::string date;    // likewise: as of when

  // None: the sheet does not say. Of a spot price without one on demand, both are the same.
  std::optional<NodePrice> Find(const std::string& instance_type, bool spot) const;
};

// A map in YAML or JSON: `instanceTypes`, by name, each with `onDemand` and/or `spot`, decimals in
// dollars an hour; `region`, `date`, and `currency`, which can only be USD. An error names every
// field that is wrong, such as instanceTypes.m5.large.spot. Pure, safe from any thread.
absl::StatusOr<PriceSheet> ParsePriceSheet(std::string_view text);

}  // namespace hetero::api
