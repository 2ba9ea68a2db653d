#include "runtime/local/supervisor.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/operators.h"
#include "api/reasons.h"
#include "api/run_limits.h"
#include "runtime/process/last_word.h"

namespace hetero::local {
namespace {

constexpr char kLeft[] = " left, as it was asked to; another process takes its place";

// As a container's: a shell and a container runtime add the signal to 128.
api::FailureFacts FactsOf(const ExitStatus& status) {
  constexpr int kOfSignals = 128;
  return {.exit_code = status.signal != 0 ? kOfSignals + status.signal : status.code,
          .reason = api::failure::kError};
}

}  // namespace

bool Supervisor::Look() {
  bool changed = false;
  for (Member& member : processes_.members()) {
    if (member.ended) continue;
    const std::optional<ExitStatus> status = member.child.Poll();
    if (!status) continue;
    member.ended = changed = true;
    member.exit = status;
    OnExit(member, *status);
  }
  if (changed) processes_.WriteList();
  processes_.FollowScripts();
  KillLost();
  KillHangingHead();
  CheckLimits();
  // A head that is still starting hears of it later.
  while (!processes_.head().ended && !unreported_exits_.empty() &&
         watch_.ReportExit(unreported_exits_.front()).ok()) {
    unreported_exits_.erase(unreported_exits_.begin());
  }
  return !processes_.head().ended;
}

void Supervisor::ApplySizing(const v1::JobStatus& status) {
  if (job_.spec.autoscaling != api::Switch::kEnabled || status.state() != v1::JobStatus::RUNNING) {
    return;
  }
  for (const v1::RoleSizing& sizing : status.sizing()) {
    for (const api::Role& role : job_.spec.roles) {
      if (role.name != sizing.role() || role.type != api::RoleType::kCpuWorker) continue;
      if (!processes_.Resize(role, sizing.needed_replicas(), console_)) continue;
      console_.Line(absl::StrCat(
          role.name, ": ", sizing.needed_replicas(),
          sizing.needed_replicas() == 1 ? " replica now; " : " replicas now; ", sizing.reason()));
      processes_.WriteList();
    }
  }
}

void Supervisor::OnExit(Member& member, const ExitStatus& status) {
  if (member.head()) head_exit_ = status;
  // A head that exits by itself has ended the job.
  const bool job_ended = member.head() && status.signal == 0;
  if (ends_expected_ || job_ended) return;
  if (status.ok() && member.plan.type == api::RoleType::kCpuWorker && !member.leaving &&
      api::HasPython(job_.spec.pipeline) && HasLeft(member)) {
    // The trainers' own cores do not take over what needs Python.
    console_.Line(absl::StrCat(member.plan.name, kLeft));
    return Replace(member, /*cost=*/0);
  }
  if (status.ok()) {
    // The head may be another than the one that it would have told, or it has not listened.
    if (!member.head()) TellExit(member, status, /*replaced=*/false);
    return;
  }
  if (member.leaving) return;
  if (member.rank() && HasLeft(member)) {
    console_.Line(absl::StrCat(member.plan.name, kLeft));
    if (member.plan.gang) return ReplaceAll(member.plan.name + " left", /*cost=*/0, &member);
    TellExit(member, status, /*replaced=*/true);
    return Replace(member, /*cost=*/0);
  }
  console_.Line(absl::StrCat(member.plan.name, " ended: ", status.ToString(), "; see ",
                             processes_.LogOf(member.plan.name)));
  if (const std::optional<api::FailureDecision> rule = RuleFor(member, status)) {
    Obey(*rule, member, status);
    return;
  }
  // A trainer that exits by itself has told the head why, and would fail again.
  const bool final = member.rank() && (status.signal == 0 || input_only_);
  const bool replaced = !final && MayReplace(member);
  if (replaced && member.plan.gang) {
    ReplaceAll(member.plan.name + " ended", /*cost=*/1, &member);
    return;
  }
  if (!member.head()) {
    const int limit = job_.spec.run_policy.max_restarts;
    TellExit(
        member, status, replaced,
        final || replaced ? "" : absl::StrCat("; runPolicy.maxRestarts (", limit, ") is used up"));
  }
  if (replaced) Replace(member, /*cost=*/1);
}

std::optional<v1::Finished> Supervisor::LastWordOf(const Member& member) const {
  v1::Identity rank;
  rank.set_role(member.plan.role);
  rank.set_index(member.plan.index);
  rank.set_incarnation(member.incarnation);
  return process::ReadLastWord(processes_.plan().socket_folder, rank);
}

// A leave costs the others nothing, and so it costs no restart.
bool Supervisor::HasLeft(const Member& member) const {
  const std::optional<v1::Finished> word = LastWordOf(member);
  return word && word->leaving();
}

// Rules are for processes that died. What a rank said as its last word the head has judged, and a
// job that only reads goes on with nobody's replacement.
std::optional<api::FailureDecision> Supervisor::RuleFor(const Member& member,
                                                        const ExitStatus& status) const {
  if (input_only_) return std::nullopt;
  if (member.rank() && LastWordOf(member)) return std::nullopt;
  const api::FailureDecision decision = api::DecideFailure(RoleOf(member), FactsOf(status));
  if (!decision.rule) return std::nullopt;
  return decision;
}

const api::Role& Supervisor::RoleOf(const Member& member) const {
  return *std::find_if(job_.spec.roles.begin(), job_.spec.roles.end(),
                       [&member](const api::Role& role) { return role.name == member.plan.role; });
}

void Supervisor::Obey(const api::FailureDecision& rule, Member& member, const ExitStatus& status) {
  const std::string why =
      absl::StrCat(api::DescribeFailure(member.plan.name, FactsOf(status)), "; ",
                   api::DescribeRule(RoleOf(member), rule.rule.value_or(0)));
  console_.Line(why);
  switch (rule.action) {
    case api::FailureAction::kFailJob:
      failure_ = {api::reason::kRuleMatched, why};
      return;
    case api::FailureAction::kIgnore:
      return;
    case api::FailureAction::kRestartGang:
      if (MayReplace(member)) {
        ReplaceAll(member.plan.name + " ended", /*cost=*/1, &member);
      } else {
        FailForRestarts(why);
      }
      return;
    case api::FailureAction::kRestartPod: {
      const bool replaced = MayReplace(member);
      if (!member.head()) TellExit(member, status, replaced);
      if (replaced) Replace(member, /*cost=*/1);
      return;
    }
  }
}

void Supervisor::FailForRestarts(const std::string& cause) {
  failure_ = {api::reason::kMaxRestartsExceeded,
              api::DescribeRestartsExceeded(cause, job_.spec.run_policy.max_restarts)};
}

// Trainers do without CPU workers, but for Python operators; for all others they would wait.
void Supervisor::CannotStart(const Member& member, const absl::Status& error) {
  console_.Line(absl::StrCat(member.plan.name, ": ", error.message()));
  if (!member.head() && !member.rank() && !api::HasPython(job_.spec.pipeline)) return;
  failure_ = {api::reason::kTrainingFailed, std::string(error.message())};
}

void Supervisor::CheckLimits() {
  if (ends_expected_ || failure_) return;
  const base::Instant now = clock_.Now();
  if (limits_.DeadlineOver(now)) {
    failure_ = {api::reason::kDeadlineExceeded,
                api::DescribeActiveDeadline(*limits_.active_deadline())};
    return;
  }
  const std::optional<v1::JobStatus> status = watch_.latest();
  const int64_t words = watch_.words();
  // A head that is silent, or was replaced, says nothing about steps.
  if (!status || words == judged_words_) return;
  judged_words_ = words;
  if (status->head_incarnation() != processes_.head().incarnation) return;
  if (!limits_.Stalled(*status, now)) return;
  const std::string message = api::DescribeStall(*limits_.stall_timeout());
  if (restarts_ < job_.spec.run_policy.max_restarts) {
    ReplaceAll("of " + message, /*cost=*/1);
  } else {
    FailForRestarts(message);
  }
}

bool Supervisor::MayReplace(const Member& member) {
  const int limit = job_.spec.run_policy.max_restarts;
  if (restarts_ < limit) return true;
  console_.Line(absl::StrCat(member.plan.name, " is not replaced: runPolicy.maxRestarts (", limit,
                             ") is used up"));
  return false;
}

void Supervisor::TellExit(const Member& member, const ExitStatus& status, bool replaced,
                          const std::string& why_not_replaced) {
  v1::ExitReport report;
  report.set_role(member.plan.role);
  report.set_index(member.plan.index);
  report.set_exit_code(status.code);
  report.set_signal(status.signal);
  report.set_message(absl::StrCat("the process ended: ", status.ToString(), "; see logs/",
                                  member.plan.name, ".log", why_not_replaced));
  report.set_replaced(replaced);
  report.set_incarnation(member.incarnation);
  if (!member.head() && status.ok()) {
    if (auto word = LastWordOf(member)) *report.add_last_words() = *std::move(word);
  }
  unreported_exits_.push_back(std::move(report));
}

void Supervisor::Replace(Member& member, int cost) {
  restarts_ += cost;
  if (const absl::Status started = processes_.Start(member); !started.ok()) {
    CannotStart(member, started);
    return;
  }
  console_.Line(absl::StrCat(member.plan.name, " is started again (restart ", restarts_, " of ",
                             job_.spec.run_policy.max_restarts, ")"));
  if (!member.head()) return;
  head_exit_.reset();
  silence_.Begin(watch_.words());
  // The new head meets those who were replaced, and cannot know of those who have left.
  std::erase_if(unreported_exits_, [](const v1::ExitReport& report) {
    return report.replaced() || report.last_words_size() > 0;
  });
  for (const Member& other : processes_.members()) {
    if (!other.head() && other.exit && other.exit->ok()) {
      TellExit(other, *other.exit, /*replaced=*/false);
    }
  }
}

// restartScope Gang: a new attempt of the whole job, from its last checkpoint.
void Supervisor::ReplaceAll(const std::string& cause, int cost, const Member* ended) {
  restarts_ += cost;
  console_.Line(absl::StrCat("attempt ", processes_.attempt() + 1, " begins, because ", cause,
                             " (restart ", restarts_, " of ", job_.spec.run_policy.max_restarts,
                             ")"));
  unreported_exits_.clear();
  // The head that saw it goes as well, and may not have written it down.
  if (ended != nullptr && !ended->head() && ended->exit) {
    TellExit(*ended, *ended->exit, /*replaced=*/true);
  }
  head_exit_.reset();
  silence_.Begin(watch_.words());
  limits_.BeginAttempt();
  processes_.RestartAll(
      [this](const Member& member, const absl::Status& error) { CannotStart(member, error); });
}

void Supervisor::KillLost() {
  if (ends_expected_) return;
  const std::optional<v1::JobStatus> status = watch_.latest();
  if (!status) return;
  std::vector<Member*> workers;  // that are lost
  for (const v1::MemberStatus& lost : status->members()) {
    if (!lost.lost()) continue;
    for (Member& member : processes_.members()) {
      if (member.plan.role != lost.role() || member.plan.index != lost.index() ||
          member.incarnation != lost.incarnation() || member.ended || member.head()) {
        continue;
      }
      if (member.rank()) {
        member.child.Signal(SIGKILL);
      } else {
        workers.push_back(&member);
      }
    }
  }
  if (workers.empty() || !api::HasPython(job_.spec.pipeline)) return;
  const std::vector<Member>& all = processes_.members();
  const auto living = std::count_if(all.begin(), all.end(), [](const Member& member) {
    return !member.head() && !member.rank() && !member.ended;
  });
  if (static_cast<size_t>(living) > workers.size()) return;
  for (Member* worker : workers) worker->child.Signal(SIGKILL);
}

void Supervisor::KillHangingHead() {
  Member& head = processes_.members().front();
  if (ends_expected_ || head.ended) return;
  switch (silence_.Look(watch_.words(), clock_.Now())) {
    case HeadSilence::Verdict::kAlive:
      return;
    case HeadSilence::Verdict::kAskAgain:
      watch_.AskAgain();
      return;
    case HeadSilence::Verdict::kHangs:
      console_.Line(
          absl::StrCat(head.plan.name, " hangs: its process lives, but it has said nothing for ",
                       base::ToSeconds(silence_.limit()), " s and does not answer; it is killed"));
      head.child.Signal(SIGKILL);
      silence_.Begin(watch_.words());
  }
}

}  // namespace hetero::local
