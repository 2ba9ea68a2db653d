#include "runtime/local/supervisor.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/process/last_word.h"

namespace hetero::local {

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
  KillLostTrainers();
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
  if (status.ok()) {
    // The head may be another than the one that it would have told, or it has not listened.
    if (!member.head()) TellExit(member, status, /*replaced=*/false);
    return;
  }
  if (member.leaving) return;
  console_.Line(absl::StrCat(member.plan.name, " ended: ", status.ToString(), "; see ",
                             processes_.LogOf(member.plan.name)));
  // A trainer that exits by itself has told the head why, and would fail again.
  const bool final = member.rank() && (status.signal == 0 || input_only_);
  const bool replaced = !final && MayReplace(member);
  if (replaced && member.plan.gang) {
    ReplaceAll(member, status);
    return;
  }
  if (!member.head()) {
    const int limit = job_.spec.run_policy.max_restarts;
    TellExit(
        member, status, replaced,
        final || replaced ? "" : absl::StrCat("; runPolicy.maxRestarts (", limit, ") is used up"));
  }
  if (replaced) Replace(member);
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
    v1::Identity rank;
    rank.set_role(member.plan.role);
    rank.set_index(member.plan.index);
    rank.set_incarnation(member.incarnation);
    if (auto word = process::ReadLastWord(processes_.plan().socket_folder, rank)) {
      *report.add_last_words() = *std::move(word);
    }
  }
  unreported_exits_.push_back(std::move(report));
}

void Supervisor::Replace(Member& member) {
  ++restarts_;
  if (const absl::Status started = processes_.Start(member); !started.ok()) {
    console_.Line(absl::StrCat(member.plan.name, ": ", started.message()));
    return;
  }
  console_.Line(absl::StrCat(member.plan.name, " is started again (restart ", restarts_, " of ",
                             job_.spec.run_policy.max_restarts, ")"));
  if (!member.head()) return;
  head_exit_.reset();
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
void Supervisor::ReplaceAll(const Member& cause, const ExitStatus& status) {
  ++restarts_;
  console_.Line(absl::StrCat("attempt ", processes_.attempt() + 1, " begins, because ",
                             cause.plan.name, " ended (restart ", restarts_, " of ",
                             job_.spec.run_policy.max_restarts, ")"));
  unreported_exits_.clear();
  // The head that saw it goes as well, and may not have written it down.
  if (!cause.head()) TellExit(cause, status, /*replaced=*/true);
  head_exit_.reset();
  processes_.RestartAll(console_);
}

void Supervisor::KillLostTrainers() {
  if (ends_expected_) return;
  const std::optional<v1::JobStatus> status = watch_.latest();
  if (!status) return;
  for (const v1::MemberStatus& lost : status->members()) {
    if (!lost.lost()) continue;
    for (Member& member : processes_.members()) {
      if (member.rank() && member.plan.role == lost.role() && member.plan.index == lost.index() &&
          member.incarnation == lost.incarnation() && !member.ended) {
        member.child.Signal(SIGKILL);
      }
    }
  }
}

}  // namespace hetero::local
