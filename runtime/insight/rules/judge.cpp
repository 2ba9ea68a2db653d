#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>

#include "runtime/insight/rules/limits.h"
#include "runtime/insight/rules/reading.h"
#include "runtime/insight/rules/rule.h"

namespace hetero::insight {
namespace {

struct Judged {
  Finding finding;
  const Rule* rule = nullptr;
  bool explained = false;
};

bool Ignored(const Settings& settings, const Rule& rule) {
  const auto found = settings.find(std::string(rule.name));
  return found != settings.end() && found->second.ignored;
}

bool HasEnough(const Evidence& evidence) {
  return evidence.complete ? evidence.window_seconds > 0
                           : evidence.window_seconds >= kLeastWindowSeconds;
}

// What happens to one member explains nothing of another one, but what it does to the job.
bool Explains(const Finding& cause, const Finding& symptom) {
  return cause.member.empty() || symptom.member.empty() || cause.member == symptom.member;
}

bool IsExplained(const Judged& judged, const std::vector<Judged>& all) {
  const auto& names = judged.rule->explained_by;
  return std::any_of(all.begin(), all.end(), [&](const Judged& other) {
    return std::find(names.begin(), names.end(), other.rule->name) != names.end() &&
           Explains(other.finding, judged.finding);
  });
}

bool ComesBefore(const Judged& a, const Judged& b) {
  const auto key = [](const Judged& judged) {
    return std::make_tuple(judged.explained, -judged.finding.dollars.value_or(0),
                           -judged.finding.seconds);
  };
  return key(a) < key(b);
}

}  // namespace

std::vector<Finding> Judge(const Evidence& evidence, const Settings& settings) {
  const Reading reading(evidence);
  const auto dollars_per_hour = reading.dollars_per_hour();
  const bool enough = HasEnough(reading.evidence());
  std::vector<Judged> all;
  for (const Rule& rule : AllRules()) {
    if (Ignored(settings, rule) || (rule.window == RuleWindow::kRecent && !enough)) continue;
    for (Finding& finding : rule.judge(reading, Limits(rule, settings))) {
      finding.rule = rule.name;
      if (!finding.dollars && dollars_per_hour && finding.seconds > 0) {
        finding.dollars = finding.seconds / kSecondsPerHour * *dollars_per_hour;
      }
      all.push_back({std::move(finding), &rule});
    }
  }
  for (Judged& judged : all) judged.explained = IsExplained(judged, all);
  std::stable_sort(all.begin(), all.end(), ComesBefore);
  std::vector<Finding> findings;
  for (Judged& judged : all) findings.push_back(std::move(judged.finding));
  return findings;
}

}  // namespace hetero::insight
