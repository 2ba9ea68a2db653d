#include "runtime/local/strict_rules.h"

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/json_access.h"
#include "base/status_macros.h"
#include "runtime/insight/finding_text.h"

namespace hetero::local {
namespace {

using nlohmann::json;

insight::ReportFinding FindingOf(const json& from) {
  insight::ReportFinding finding{.rule = base::TextOf(from, "rule"),
                                 .message = base::TextOf(from, "message"),
                                 .remedy = base::TextOf(from, "remedy"),
                                 .field = base::TextOf(from, "field"),
                                 .member = base::TextOf(from, "member"),
                                 .since = base::TextOf(from, "since"),
                                 .active = base::IsTrue(from, "active")};
  const json& seconds = base::FieldOf(from, "seconds");
  const json& dollars = base::FieldOf(from, "dollars");
  if (seconds.is_number()) finding.seconds = seconds.get<double>();
  if (dollars.is_number()) finding.dollars = dollars.get<double>();
  return finding;
}

}  // namespace

absl::StatusOr<std::string> HeldFindings(std::string_view report_json) {
  const json report = json::parse(report_json, nullptr, /*allow_exceptions=*/false);
  if (!report.is_object()) return absl::InvalidArgumentError("the report is no JSON object");
  std::string lines;
  int held = 0;
  for (const json& entry : base::ListOf(report, "findings")) {
    const insight::ReportFinding finding = FindingOf(entry);
    if (!finding.active) continue;
    ++held;
    absl::StrAppend(&lines, "  ", insight::FindingLine(finding), "\n");
  }
  if (held == 0) return "";
  return absl::StrCat("--strict-rules: ", held, held == 1 ? " finding" : " findings",
                      " at the end of the job\n", lines);
}

absl::StatusOr<std::string> HeldFindingsIn(const std::string& output) {
  constexpr int64_t kMaxReportBytes = int64_t{64} << 20;  // curves and lists in it are bounded
  HETERO_ASSIGN_OR_RETURN(const std::string text,
                          base::ReadFile(absl::StrCat(output, "/report.json"), kMaxReportBytes));
  return HeldFindings(text);
}

}  // namespace hetero::local
