#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/field_table.h"
#include "api/finding_rules.h"
#include "api/suggest.h"
#include "api/validate.h"

namespace hetero::api {
namespace {

std::string Unknown(const std::string& what, const std::string& name,
                    const std::vector<std::string>& known) {
  const std::string nearest = Nearest(name, known);
  return absl::StrCat("no ", what, " '", name, "'; ",
                      nearest.empty() ? absl::StrCat("there are ", Join(known))
                                      : absl::StrCat("did you mean ", nearest, "?"));
}

void CheckThresholds(const InsightRule& rule, const RuleRow& row, const std::string& rule_path,
                     Findings& findings) {
  std::map<std::string, size_t> first_index;
  for (size_t i = 0; i < rule.thresholds.size(); ++i) {
    const RuleThreshold& threshold = rule.thresholds[i];
    const std::string list = rule_path + ".thresholds";
    const std::string path = Element(list, i);
    if (findings.Broken(path)) continue;
    const auto [first, is_new] = first_index.emplace(threshold.name, i);
    if (!is_new) {
      findings.Add(path + ".name", absl::StrCat("'", threshold.name, "' is the name of ",
                                                Element(list, first->second), " too"));
    } else if (row.Find(threshold.name) == nullptr) {
      findings.Add(path + ".name", Unknown(absl::StrCat("threshold of ", row.name, " is called"),
                                           threshold.name, row.ThresholdNames()));
    }
  }
}

}  // namespace

void ValidateInsight(const Spec& spec, Findings& findings) {
  if (!spec.insight) return;
  std::map<std::string, size_t> first_index;
  for (size_t i = 0; i < spec.insight->rules.size(); ++i) {
    const InsightRule& rule = spec.insight->rules[i];
    const std::string path = Element("spec.insight.rules", i);
    if (findings.Unread(path + ".name")) continue;
    const auto [first, is_new] = first_index.emplace(rule.name, i);
    const RuleRow* row = FindRule(rule.name);
    if (!is_new) {
      findings.Add(path + ".name",
                   absl::StrCat("'", rule.name, "' is the name of ",
                                Element("spec.insight.rules", first->second), " too"));
    } else if (row == nullptr) {
      findings.Add(path + ".name", Unknown("rule is called", rule.name, RuleNames()));
    } else {
      CheckThresholds(rule, *row, path, findings);
    }
  }
}

}  // namespace hetero::api
