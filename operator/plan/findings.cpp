#include "operator/plan/findings.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/reasons.h"

namespace hetero::plan {
namespace {

// An event is one line.
std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string NoteOf(const api::JobFinding& finding) {
  std::string note = finding.rule;
  if (!finding.member.empty()) absl::StrAppend(&note, " (", finding.member, ")");
  absl::StrAppend(&note, ": ", FirstLine(finding.message));
  if (!finding.remedy.empty()) absl::StrAppend(&note, "; ", FirstLine(finding.remedy));
  return note;
}

// Which have been told is in the status, so that an operator that starts again knows.
void TellOnce(Pass& pass, const api::JobFinding& finding) {
  std::vector<std::string>& told = pass.status.findings_told;
  const std::string name =
      finding.member.empty() ? finding.rule : absl::StrCat(finding.rule, "/", finding.member);
  if (told.size() >= api::kMostToldFindings) return;
  if (std::find(told.begin(), told.end(), name) != told.end()) return;
  told.push_back(name);
  pass.AddEvent(true, api::event::kFinding, "Judge", NoteOf(finding));
}

}  // namespace

void CopyFindings(Pass& pass) {
  const HeadReport* report = pass.Report();
  if (report == nullptr) return;
  if (report->findings.empty()) {
    if (report->state != HeadReport::State::kRunning) return;
    for (api::JobFinding& finding : pass.status.findings) finding.active = false;
    return;
  }
  pass.status.findings = report->findings;
  for (const api::JobFinding& finding : pass.status.findings) TellOnce(pass, finding);
}

}  // namespace hetero::plan
