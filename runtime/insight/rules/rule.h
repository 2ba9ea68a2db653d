#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/insight/evidence.h"
#include "runtime/insight/finding.h"

// Rules that turn what was measured of a job into findings. Pure functions of their arguments, safe
// from any thread; docs/findings.md has a section for each rule.
namespace hetero::insight {

// Of recent rules: how much time their evidence should cover, and below how much they say nothing
// unless it is the whole of a training that has ended.
inline constexpr double kWindowSeconds = 60;
inline constexpr double kLeastWindowSeconds = 20;

// What a rule judges by: the window, or all of the training until now.
enum class RuleWindow { kRecent, kTraining };

struct Threshold {
  std::string_view name;  // "waitPercent"
  double value = 0;       // unless settings say otherwise
  std::string_view unit;  // "% of the time"; may be empty: a plain number
  std::string_view meaning;
};

class Reading;  // what several rules work out of the evidence (reading.h)
class Limits;   // the thresholds of one rule, with what settings say (limits.h)

struct Rule {
  std::string_view name;
  RuleWindow window = RuleWindow::kRecent;
  std::vector<Threshold> thresholds;
  // Rules whose findings make this one's a symptom: it is told behind all that is not explained.
  std::vector<std::string_view> explained_by;
  // Findings with all members set but `rule` and, unless the rule counts them itself, `dollars`.
  std::vector<Finding> (*judge)(const Reading& reading, const Limits& limits);
  // It is about one member, and what is found of members of other machines explains nothing of it.
  bool of_machine = false;
};

// In the order of docs/findings.md. The same for the life of the process.
const std::vector<Rule>& AllRules();

struct RuleSettings {
  bool ignored = false;
  std::map<std::string, double> thresholds;  // by name; others have their defaults
};

using Settings = std::map<std::string, RuleSettings>;  // by rule

// InvalidArgument that names each rule and threshold that does not exist, with the nearest name or
// all that there are, and each value that is no finite number of at least 0.
absl::Status CheckSettings(const Settings& settings);

// What all rules find that are not ignored: causes first, by dollars, then by seconds, then in the
// rules' order; behind them, likewise, what others explain. A rule whose window is recent is not
// asked when the evidence covers too little time. Numbers in the evidence that are not finite or
// less than 0 count as not measured, but for losses. Unknown names in `settings` are passed over.
std::vector<Finding> Judge(const Evidence& evidence, const Settings& settings);

}  // namespace hetero::insight
