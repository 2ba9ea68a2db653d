#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/compare/run_report.h"

namespace hetero::compare {

// What `value` is of `first`, a positive one; absent where either is not known, or the ratio is no
// number.
std::optional<double> RatioOf(const std::optional<double>& value,
                              const std::optional<double>& first);

// One side of a price/performance table: medians over its runs, starting left out.
struct PriceSide {
  std::optional<double> samples_per_second, dollars_per_hour, dollars_per_million;
  std::optional<double> samples_per_dollar() const;
};

// The trainers alone against the trainers with CPU workers.
struct PriceTable {
  PriceSide alone, together;
  // The least and the greatest ratio of the rates within a pair of runs, where there are several.
  std::optional<double> least_ratio, greatest_ratio;
  std::vector<std::string> notes;  // what the table does not say
};

// `alone` and `together` are pairs, at least one, run by run.
PriceTable PriceTableOf(const std::vector<RunReport>& alone,
                        const std::vector<RunReport>& together);

// The sentence on what the CPU workers did to speed and price; a difference that not all pairs show
// is none. Empty: there are no pairs, or no rates.
std::string PairsVerdict(const PriceTable& table);

// Its lines for a terminal.
std::string ToText(const PriceTable& table);

// "1.408", "35.894": as price lists have it.
std::string DollarsText(double dollars);

}  // namespace hetero::compare
