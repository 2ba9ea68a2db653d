#include "api/finding_rules.h"

#include <algorithm>

namespace hetero::api {
namespace {

std::vector<RuleRow> MakeRows() {
  return {
      {"InputBound",
       {{"waitPercent", 10, "% of the time", "how long ranks wait for batches"}},
       "CPU workers prepare fewer batches than the ranks take"},
      {"LossNotFinite", {}, "steps whose loss or gradients are no numbers"},
  };
}

}  // namespace

const ThresholdRow* RuleRow::Find(std::string_view threshold) const {
  const auto found = std::find_if(thresholds.begin(), thresholds.end(),
                                  [threshold](const auto& row) { return row.name == threshold; });
  return found == thresholds.end() ? nullptr : &*found;
}

std::vector<std::string> RuleRow::ThresholdNames() const {
  std::vector<std::string> names;
  for (const ThresholdRow& row : thresholds) names.emplace_back(row.name);
  return names;
}

const std::vector<RuleRow>& FindingRules() {
  static const auto& rows = *new std::vector<RuleRow>(MakeRows());
  return rows;
}

const RuleRow* FindRule(std::string_view name) {
  const std::vector<RuleRow>& rows = FindingRules();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [name](const auto& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

std::vector<std::string> RuleNames() {
  std::vector<std::string> names;
  for (const RuleRow& row : FindingRules()) names.emplace_back(row.name);
  return names;
}

double DefaultThreshold(std::string_view rule, std::string_view threshold) {
  return FindRule(rule)->Find(threshold)->value;
}

}  // namespace hetero::api
