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

bool OnOneMachine(const Reading& reading, const std::string& a, const std::string& b) {
  if (a == b) return true;
  const MemberEvidence* one = reading.FindMember(a);
  const MemberEvidence* other = reading.FindMember(b);
  return one != nullptr && other != nullptr && !one->node.empty() && one->node == other->node;
}

bool Explains(const Reading& reading, const Judged& cause, const Judged& symptom) {
  const std::string& a = cause.finding.member;
  const std::string& b = symptom.finding.member;
  return !symptom.rule->of_machine || a.empty() || b.empty() || OnOneMachine(reading, a, b);
}

bool IsExplained(const Reading& reading, const Judged& judged, const std::vector<Judged>& all) {
  const auto& names = judged.rule->explained_by;
  return std::any_of(all.begin(), all.end(), [&](const Judged& other) {
    return std::find(names.begin(), names.end(), other.rule->name) != names.end() &&
           Explains(reading, other, judged);
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
      if (rule.window == RuleWindow::kRecent) {
        finding.seconds = std::min(finding.seconds, reading.window_seconds());
      }
      if (!finding.dollars && dollars_per_hour && finding.seconds > 0) {
        finding.dollars = finding.seconds / kSecondsPerHour * *dollars_per_hour;
      }
      all.push_back({std::move(finding), &rule});
    }
  }
  for (Judged& judged : all) judged.explained = IsExplained(reading, judged, all);
  std::stable_sort(all.begin(), all.end(), ComesBefore);
  std::vector<Finding> findings;
  for (Judged& judged : all) findings.push_back(std::move(judged.finding));
  return findings;
}

}  // namespace hetero::insight
