#include "operator/reconcile/head_report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/ends_of_text.h"
#include "base/utf8.h"
#include "operator/reconcile/head_limits.h"

namespace hetero::reconcile {
namespace {

using plan::HeadReport;

constexpr size_t kMaxHistoryBytes = 8192;  // maxLength of the schema

HeadReport::State StateFrom(v1::JobStatus::State state) {
  switch (state) {
    case v1::JobStatus::WAITING:
      return HeadReport::State::kWaiting;
    case v1::JobStatus::RUNNING:
      return HeadReport::State::kRunning;
    case v1::JobStatus::SUCCEEDED:
      return HeadReport::State::kSucceeded;
    case v1::JobStatus::FAILED:
      return HeadReport::State::kFailed;
    case v1::JobStatus::STOPPED:
      return HeadReport::State::kStopped;
    default:
      return HeadReport::State::kUnknown;  // a newer head's word
  }
}

// "gpu-0.1" is the second rank of the member "gpu-0".
std::string WithoutLocalRank(const std::string& member) {
  return member.substr(0, member.find('.'));
}

api::JobResult ResultFrom(const v1::Result& from) {
  api::JobResult result;
  if (from.has_loss()) result.loss = from.loss();
  if (from.has_accuracy()) result.accuracy = from.accuracy();
  if (from.has_samples_per_second()) result.samples_per_second = from.samples_per_second();
  if (from.has_steps()) result.steps = from.steps();
  if (from.has_cost_dollars()) result.cost_dollars = from.cost_dollars();
  result.stream_digest = base::ToUtf8(from.stream_digest(), kLongestDigest);
  result.report_uri = base::ToUtf8(from.report_uri(), kLongestUri);
  result.checkpoint_uri = base::ToUtf8(from.checkpoint_uri(), kLongestUri);
  return result;
}

double Finite(double value) { return std::isfinite(value) ? value : 0; }

// kubectl prints what the status holds: no more digits than are worth reading.
double Rounded(double value, double per_unit) {
  return std::round(Finite(value) * per_unit) / per_unit;
}

std::optional<double> IfPositive(double value, double per_unit) {
  const double rounded = Rounded(value, per_unit);
  return rounded > 0 ? std::optional<double>(rounded) : std::nullopt;
}

api::JobFinding FindingFrom(const v1::Finding& from) {
  api::JobFinding finding;
  finding.rule = base::ToUtf8(from.rule(), kLongestRule);
  finding.message = base::ToUtf8(from.message(), kLongestAdvice);
  finding.remedy = base::ToUtf8(from.remedy(), kLongestAdvice);
  finding.field = base::ToUtf8(from.field(), kLongestField);
  finding.member = base::ToUtf8(from.member(), kLongestMember);
  finding.seconds = IfPositive(from.seconds(), 10);
  if (from.has_dollars()) finding.dollars = IfPositive(from.dollars(), 1e4);
  const std::chrono::nanoseconds first(std::max<int64_t>(from.first_unix_ns(), 0));
  finding.since = base::WallTime(std::chrono::floor<std::chrono::seconds>(first));
  finding.active = from.active();
  return finding;
}

bool SamePlace(const api::JobFinding& a, const api::JobFinding& b) {
  return a.rule == b.rule && a.member == b.member;
}

std::vector<api::JobFinding> FindingsFrom(const v1::JobStatus& status) {
  std::vector<api::JobFinding> findings;
  for (const v1::Finding& from : status.findings()) {
    if (findings.size() == api::kMostFindings) break;
    api::JobFinding finding = FindingFrom(from);
    const bool known = std::any_of(
        findings.begin(), findings.end(),
        [&finding](const api::JobFinding& earlier) { return SamePlace(earlier, finding); });
    if (!finding.rule.empty() && !known) findings.push_back(std::move(finding));
  }
  return findings;
}

// Whatever their figures and their order.
bool SameButForFigures(const std::vector<api::JobFinding>& some,
                       const std::vector<api::JobFinding>& others) {
  return std::is_permutation(some.begin(), some.end(), others.begin(), others.end(),
                             [](const api::JobFinding& a, const api::JobFinding& b) {
                               return SamePlace(a, b) && a.active == b.active;
                             });
}

}  // namespace

HeadReportBuilder::HeadReportBuilder(std::string job_name, int32_t attempt)
    : job_name_(std::move(job_name)) {
  report_.attempt = attempt;
}

bool HeadReportBuilder::Heard(const v1::JobStatus& status, base::Instant now,
                              base::WallTime wall_now) {
  const HeadReport::State before = report_.state;
  const bool was_connected = report_.connected;
  report_.state = StateFrom(status.state());
  report_.connected = true;
  HeardUnchanged(wall_now);
  report_.generation = status.generation();
  report_.head_incarnation = std::max(report_.head_incarnation, status.head_incarnation());
  if (report_.state == HeadReport::State::kRunning && before != report_.state) {
    report_.last_step_time = wall_now;
  }
  report_.roles.clear();
  for (const v1::RoleStatus& role : status.roles()) {
    if (!replicas_.contains(role.name())) continue;
    report_.roles[role.name()] = {.desired = std::max(role.desired(), 0),
                                  .registered = std::max(role.registered(), 0)};
  }
  // A history that is not there is one that this stream has told; a longer one no status holds.
  if (!status.history().empty() && status.history().size() <= kMaxHistoryBytes) {
    report_.history = status.history();
  }
  report_.notices_fingerprint = status.notices_fingerprint();
  report_.first_failure = ReadFailure(status);
  const bool script_failed = status.script_restarts() > report_.script_restarts;
  report_.script_restarts = std::max(report_.script_restarts, status.script_restarts());
  ReadProgress(status, wall_now);
  ReadMembers(status, now);
  if (report_.state == HeadReport::State::kSucceeded ||
      report_.state == HeadReport::State::kFailed) {
    report_.verdict = ReadVerdict(status);
  } else {
    report_.verdict.reset();
  }
  const bool advice = ReadAdvice(status);
  const bool found = ReadFindings(status, now);
  return UpdateLost(now) || advice || found || script_failed || before != report_.state ||
         !was_connected;
}

// True when it is new.
bool HeadReportBuilder::ReadAdvice(const v1::JobStatus& status) {
  std::map<std::string, HeadReport::Sizing> sizing;
  for (const v1::RoleSizing& role : status.sizing()) {
    if (!replicas_.contains(role.role())) continue;
    sizing[role.role()] = {.needed = role.needed_replicas(),
                           .reason = base::ToUtf8(role.reason(), kLongestReason)};
  }
  const bool resized = std::any_of(sizing.begin(), sizing.end(), [this](const auto& entry) {
    const auto before = report_.sizing.find(entry.first);
    return before == report_.sizing.end() || before->second.needed != entry.second.needed;
  });
  report_.sizing = std::move(sizing);
  std::string problem = base::ToUtf8(status.checkpoint_problem(), kLongestMessage);
  const bool trouble = report_.checkpoint_problem != problem;
  report_.checkpoint_problem = std::move(problem);
  return resized || trouble;
}

// True when it is more than figures that changed. The last ones are never put off.
bool HeadReportBuilder::ReadFindings(const v1::JobStatus& status, base::Instant now) {
  std::vector<api::JobFinding> findings = FindingsFrom(status);
  const bool changed = !SameButForFigures(findings, report_.findings);
  const bool ended = report_.verdict || report_.state == HeadReport::State::kStopped;
  if (!changed && !ended && now - findings_read_ < kFindingsPeriod) return false;
  findings_read_ = now;
  report_.findings = std::move(findings);
  return changed;
}

void HeadReportBuilder::ReadProgress(const v1::JobStatus& status, base::WallTime wall_now) {
  const v1::Progress& from = status.progress();
  if (from.step() == 0 && from.total_steps() == 0) return;
  api::JobProgress progress;
  progress.epoch = from.epoch();
  progress.step = from.step();
  progress.total_steps = from.total_steps();
  progress.samples_per_second = Rounded(from.samples_per_second(), 10);
  progress.data_wait_percent = Rounded(from.data_wait_percent(), 10);
  progress.loss = Rounded(from.loss(), 1e6);
  progress.eta_seconds = std::llround(std::clamp(Finite(status.eta_seconds()), 0.0, 1e12));
  const int64_t step_before = report_.progress ? report_.progress->step : 0;
  if (progress.step > step_before) report_.last_step_time = wall_now;
  if (report_.progress) progress.last_update_time = report_.progress->last_update_time;
  if (progress == report_.progress) return;
  // Kubernetes' times have whole seconds: with more, the status would never equal what was stored.
  progress.last_update_time = std::chrono::floor<std::chrono::seconds>(wall_now);
  report_.progress = progress;
}

bool HeadReportBuilder::IsMember(const v1::MemberStatus& member) const {
  const auto role = replicas_.find(member.role());
  return role != replicas_.end() && member.index() >= 0 && member.index() < role->second;
}

// A replica's ranks are processes of one pod: it is whole when all are there.
void HeadReportBuilder::ReadMembers(const v1::JobStatus& status, base::Instant now) {
  std::map<std::string, HeadReport::Member> members;
  std::map<std::string, GivenUp> given_up;
  for (const v1::MemberStatus& from : status.members()) {
    if (!IsMember(from)) continue;
    const std::string name = absl::StrCat(from.role(), "-", from.index());
    const auto [entry, first] = members.try_emplace(name);
    HeadReport::Member& member = entry->second;
    member.incarnation = std::max(member.incarnation, from.incarnation());
    member.connected = from.connected() && (first || member.connected);
    if (!from.lost()) continue;
    GivenUp& gone = given_up[name];
    gone.incarnation = std::max(gone.incarnation, from.incarnation());
  }
  for (auto& [name, gone] : given_up) {
    const auto earlier = given_up_.find(name);
    const bool same = earlier != given_up_.end() && earlier->second.incarnation == gone.incarnation;
    gone.since = same ? earlier->second.since : now;
    members[name].incarnation = gone.incarnation;
  }
  for (auto& [name, member] : members) {
    const auto earlier = report_.members.find(name);
    member.lost = given_up.contains(name) && earlier != report_.members.end() &&
                  earlier->second.lost && earlier->second.incarnation == member.incarnation;
  }
  report_.members = std::move(members);
  given_up_ = std::move(given_up);
}

bool HeadReportBuilder::UpdateLost(base::Instant now) {
  bool changed = false;
  for (const auto& [name, gone] : given_up_) {
    HeadReport::Member& member = report_.members[name];
    if (member.lost || now - gone.since < kLostAfter) continue;
    member.lost = changed = true;
  }
  return changed;
}

std::optional<base::Duration> HeadReportBuilder::UntilLost(base::Instant now) const {
  std::optional<base::Duration> least;
  for (const auto& [name, gone] : given_up_) {
    if (report_.members.at(name).lost) continue;
    const base::Duration left = std::max(base::Duration::zero(), gone.since + kLostAfter - now);
    least = std::min(least.value_or(left), left);
  }
  return least;
}

api::Verdict HeadReportBuilder::ReadVerdict(const v1::JobStatus& status) const {
  api::Verdict verdict;
  verdict.succeeded = status.state() == v1::JobStatus::SUCCEEDED;
  verdict.message = base::ToUtf8(status.summary(), kLongestMessage);
  verdict.result = ResultFrom(status.result());
  if (verdict.result.report_uri.empty()) {
    verdict.result.report_uri = base::ToUtf8(status.report_uri(), kLongestUri);
  }
  if (verdict.succeeded || !report_.first_failure) return verdict;
  verdict.failure = *report_.first_failure;
  verdict.message = verdict.failure.message;
  return verdict;
}

std::optional<api::FirstFailure> HeadReportBuilder::ReadFailure(const v1::JobStatus& status) const {
  if (!status.has_first_failure()) return std::nullopt;
  const v1::Failure& from = status.first_failure();
  api::FirstFailure failure;
  failure.message = base::EndsOfText(from.message(), kLongestMessage);
  const std::string member = WithoutLocalRank(from.member());
  const std::string role = member.substr(0, member.rfind('-'));
  if (!replicas_.contains(role)) return failure;
  failure.pod = absl::StrCat(job_name_, "-", member);
  failure.role = role;
  return failure;
}

}  // namespace hetero::reconcile
