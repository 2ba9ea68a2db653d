#pragma once

#include <string_view>

#include "runtime/insight/rules/rule.h"

namespace hetero::insight {

// The thresholds of one rule, by name: what the settings say, else the default. Refers to both.
class Limits {
 public:
  Limits(const Rule& rule, const Settings& settings);

  // A name that the rule does not have is a mistake in its code, and ends the process.
  double operator()(std::string_view name) const;

 private:
  const Rule& rule_;
  const RuleSettings* settings_;  // null: nothing is said of this rule
};

}  // namespace hetero::insight
