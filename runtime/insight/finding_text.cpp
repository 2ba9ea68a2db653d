#include "runtime/insight/finding_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/insight/figures.h"

namespace hetero::insight {

std::string FindingText(const ReportFinding& finding) {
  std::string text = finding.rule;
  if (!finding.member.empty()) absl::StrAppend(&text, " (", finding.member, ")");
  absl::StrAppend(&text, ": ", finding.message);
  if (!finding.remedy.empty()) absl::StrAppend(&text, "; ", finding.remedy);
  return text;
}

std::string FindingCost(const ReportFinding& finding) {
  std::vector<std::string> parts;
  if (Known(finding.seconds) && finding.seconds > 0) {
    parts.push_back(absl::StrCat(DurationText(finding.seconds), " of training"));
  }
  if (Known(finding.dollars)) {
    parts.push_back(absl::StrCat("$", NumberText(*finding.dollars)));
  }
  return absl::StrJoin(parts, ", ");
}

std::string FindingLine(const ReportFinding& finding) {
  std::vector<std::string> parts;
  if (const std::string cost = FindingCost(finding); !cost.empty()) {
    parts.push_back(absl::StrCat("cost ", cost));
  }
  if (!finding.active) parts.emplace_back("not at the end any more");
  const std::string text = FindingText(finding);
  return parts.empty() ? text : absl::StrCat(text, " (", absl::StrJoin(parts, "; "), ")");
}

}  // namespace hetero::insight
