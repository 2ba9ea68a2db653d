#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/suggest.h"
#include "runtime/insight/rules/rule.h"

namespace hetero::insight {
namespace {

std::string Unknown(const std::string& what, const std::string& name,
                    const std::vector<std::string>& known) {
  const std::string nearest = api::Nearest(name, known);
  return absl::StrCat(what, nearest.empty() ? "; known are " + api::Join(known)
                                            : "; did you mean " + nearest + "?");
}

const Rule* FindRule(const std::string& name) {
  for (const Rule& rule : AllRules()) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

void CheckThresholds(const Rule& rule, const RuleSettings& settings,
                     std::vector<std::string>& problems) {
  std::vector<std::string> known;
  for (const Threshold& threshold : rule.thresholds) known.emplace_back(threshold.name);
  for (const auto& [name, value] : settings.thresholds) {
    const std::string path = absl::StrCat(std::string(rule.name), ".", name);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      problems.push_back(
          Unknown(absl::StrCat(path, ": the rule has no such threshold"), name, known));
    } else if (!std::isfinite(value) || value < 0) {
      problems.push_back(absl::StrCat(path, ": ", value, " is not a number of at least 0"));
    }
  }
}

}  // namespace

absl::Status CheckSettings(const Settings& settings) {
  std::vector<std::string> problems, known;
  for (const Rule& rule : AllRules()) known.emplace_back(rule.name);
  for (const auto& [name, of_rule] : settings) {
    const Rule* rule = FindRule(name);
    if (rule == nullptr) {
      problems.push_back(Unknown(absl::StrCat(name, ": there is no such rule"), name, known));
    } else {
      CheckThresholds(*rule, of_rule, problems);
    }
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

}  // namespace hetero::insight
