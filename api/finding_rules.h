#pragma once

#include <string>
#include <string_view>
#include <vector>

// The rules by which a running job's figures become findings: what spec.insight.rules may name.
// One row per rule serves validation, messages and the defaults of whoever judges; how a rule
// judges, and over which window, is runtime/insight's. Pure, safe from any thread.
namespace hetero::api {

struct ThresholdRow {
  const char* name;     // "waitPercent"
  double value;         // without an entry in the manifest
  const char* unit;     // "percent", "seconds", ...; "times" for ratios
  const char* meaning;  // one line: what is compared with it
};

struct RuleRow {
  const char* name;  // "InputBound"
  std::vector<ThresholdRow> thresholds;
  const char* meaning;  // one line: what is found

  const ThresholdRow* Find(std::string_view threshold) const;  // null: it has none of that name
  std::vector<std::string> ThresholdNames() const;
};

// All rows, in the order of the documentation. Built once, never destroyed.
const std::vector<RuleRow>& FindingRules();
const RuleRow* FindRule(std::string_view name);  // null: there is none of that name
std::vector<std::string> RuleNames();

// What is compared with when the manifest says nothing. Rule and threshold have to be there.
double DefaultThreshold(std::string_view rule, std::string_view threshold);

}  // namespace hetero::api
