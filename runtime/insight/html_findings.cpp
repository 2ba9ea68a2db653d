#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/insight/finding_text.h"
#include "runtime/insight/html_sections.h"
#include "runtime/insight/html_text.h"

namespace hetero::insight {
namespace {

std::string FindingItem(const ReportFinding& finding) {
  std::vector<std::string> details = {finding.rule};
  for (const std::string& detail :
       {finding.member, finding.field, FindingCost(finding),
        finding.since.empty() ? "" : absl::StrCat("since ", finding.since)}) {
    if (!detail.empty()) details.push_back(detail);
  }
  if (!finding.active) details.emplace_back("not at the end any more");
  std::string item = absl::StrCat("<li><p>", EscapeHtml(finding.message), "</p>");
  if (!finding.remedy.empty()) {
    absl::StrAppend(&item, "<p><b>", EscapeHtml(finding.remedy), "</b></p>");
  }
  return absl::StrCat(item, "<p class=\"note\">", EscapeHtml(absl::StrJoin(details, " | ")),
                      "</p></li>\n");
}

}  // namespace

std::string FindingsHtml(const Report& report) {
  if (report.findings.empty()) return "";
  std::string items;
  for (const ReportFinding& finding : report.findings) items += FindingItem(finding);
  return Section("", "What to change", absl::StrCat("<ol>\n", items, "</ol>\n"));
}

}  // namespace hetero::insight
