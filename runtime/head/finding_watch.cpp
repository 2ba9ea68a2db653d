#include "runtime/head/finding_watch.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hetero::head {
namespace {

constexpr base::Duration kLookInterval = std::chrono::seconds(2);
constexpr base::Duration kTallyInterval = std::chrono::seconds(5);
// A finding that was not found again for so long holds no longer.
constexpr base::Duration kForgetAfter = std::chrono::seconds(10);

insight::Settings SettingsOf(const api::Spec& spec) {
  insight::Settings settings;
  if (!spec.insight) return settings;
  for (const api::InsightRule& rule : spec.insight->rules) {
    insight::RuleSettings& entry = settings[rule.name];
    entry.ignored = rule.action == api::RuleAction::kIgnore;
    for (const api::RuleThreshold& threshold : rule.thresholds) {
      entry.thresholds[threshold.name] = threshold.value;
    }
  }
  return settings;
}

// What holds comes first; then the costliest, in the rules' order where nothing tells them apart.
bool ComesFirst(const HeldFinding& a, const HeldFinding& b) {
  const auto rank = [](const HeldFinding& held) {
    return std::tuple(held.finding.active() ? 0 : 1, held.place);
  };
  return rank(a) < rank(b);
}

HeldFinding* FindHeld(const insight::Finding& finding, JobRecord& record) {
  const auto held =
      std::find_if(record.findings.begin(), record.findings.end(), [&](const HeldFinding& known) {
        return known.finding.rule() == finding.rule && known.finding.member() == finding.member;
      });
  return held == record.findings.end() ? nullptr : &*held;
}

void SetTexts(const insight::Finding& finding, v1::Finding& to) {
  to.set_rule(finding.rule);
  to.set_message(finding.message);
  to.set_remedy(finding.remedy);
  to.set_field(finding.field);
  to.set_member(finding.member);
  to.set_active(true);
}

Note NoteOf(const insight::Finding& finding) {
  return {.warning = true,
          .message = absl::StrCat(finding.rule, ": ", finding.message, "; ", finding.remedy),
          .member = finding.member};
}

}  // namespace

FindingWatch::FindingWatch(const api::Spec& spec) : settings_(SettingsOf(spec)) {}

std::vector<Note> FindingWatch::Look(Moment now, JobRecord& record) {
  if (now.steady - looked_at_ < kLookInterval || !record.startup_seconds) return {};
  const double since_last = base::ToSeconds(now.steady - looked_at_);
  looked_at_ = now.steady;
  std::vector<Note> told;
  if (!tallies_.empty()) {
    const insight::Evidence evidence = EvidenceSince(tallies_.front(), record, now.steady);
    // Windows overlap: of what one shows, only what is new counts.
    const double share =
        evidence.window_seconds > 0 ? std::min(1.0, since_last / evidence.window_seconds) : 0;
    told = Take(insight::Judge(evidence, settings_), share, now, record);
  }
  if (!tallies_.empty() && now.steady - tallied_at_ < kTallyInterval) return told;
  tallied_at_ = now.steady;
  tallies_.push_back(TallyOf(record, now.steady));
  while (tallies_.size() > 1 &&
         tallies_.back().job_seconds - tallies_[1].job_seconds >= insight::kWindowSeconds) {
    tallies_.pop_front();
  }
  return told;
}

std::vector<Note> FindingWatch::Close(Moment now, JobRecord& record) {
  for (HeldFinding& held : record.findings) held.finding.set_active(false);
  if (!record.startup_seconds) return {};
  const std::vector<insight::Finding> found =
      insight::Judge(EvidenceOfTraining(record, now.steady), settings_);
  for (const insight::Finding& finding : found) {
    HeldFinding* held = FindHeld(finding, record);
    if (held == nullptr) continue;
    held->finding.set_seconds(0);  // all of it is told once more
    held->finding.clear_dollars();
  }
  return Take(found, 1, now, record);
}

std::vector<Note> FindingWatch::Take(const std::vector<insight::Finding>& found, double share,
                                     Moment now, JobRecord& record) {
  std::vector<Note> told;
  for (size_t i = 0; i < found.size(); ++i) {
    const insight::Finding& finding = found[i];
    HeldFinding* held = FindHeld(finding, record);
    const bool is_new = held == nullptr;
    if (is_new) {
      if (record.findings.size() >= kMostFindings) continue;
      held = &record.findings.emplace_back();
      held->finding.set_first_unix_ns(UnixNs(now.wall));
      told.push_back(NoteOf(finding));
    }
    SetTexts(finding, held->finding);
    held->place = i;
    held->found_at = now.steady;
    const double counts = is_new ? 1 : share;
    held->finding.set_seconds(held->finding.seconds() + counts * finding.seconds);
    if (finding.dollars) {
      held->finding.set_dollars(held->finding.dollars() + counts * *finding.dollars);
    }
  }
  for (HeldFinding& held : record.findings) {
    if (now.steady - held.found_at >= kForgetAfter) held.finding.set_active(false);
  }
  std::stable_sort(record.findings.begin(), record.findings.end(), ComesFirst);
  return told;
}

}  // namespace hetero::head
