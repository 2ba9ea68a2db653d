#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/failure_decision.h"
#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "hetero/v1/status.pb.h"
#include "runtime/local/console.h"
#include "runtime/local/head_silence.h"
#include "runtime/local/process_set.h"
#include "runtime/local/run_limits.h"
#include "runtime/local/status_watch.h"

namespace hetero::local {

// What the operator is to a job's pods: notices processes that ended, that the head has given up,
// or a head that hangs; replaces them while the budget (runPolicy.maxRestarts) lasts and the roles'
// failureRules want it, tells the head, follows its word about how many CPU workers are needed, and
// keeps the job's limits of time. One thread uses it.
class Supervisor {
 public:
  // The end of a job that the head does not know of.
  struct Failure {
    std::string reason;   // one word of api/reasons.h
    std::string message;  // a sentence
  };

  Supervisor(const api::HeteroTrainingJob& job, bool input_only, ProcessSet& processes,
             StatusWatch& watch, Console& console, base::Clock& clock)
      : job_(job),
        input_only_(input_only),
        processes_(processes),
        watch_(watch),
        console_(console),
        clock_(clock),
        silence_(job.spec.run_policy.member_timeout_seconds),
        limits_(job.spec.run_policy, clock.Now()) {}

  // Whether the head still runs.
  bool Look();
  // Starts and ends CPU workers as the head asks for, when the job wants that.
  void ApplySizing(const v1::JobStatus& status);
  // From now on ends of processes are no news.
  void ExpectEnds() { ends_expected_ = true; }
  // Why the job must be ended as failed; empty: go on.
  const std::optional<Failure>& failure() const { return failure_; }
  // How the head ended; empty while it runs.
  const std::optional<ExitStatus>& head_exit() const { return head_exit_; }

 private:
  using Member = ProcessSet::Member;

  void OnExit(Member& member, const ExitStatus& status);
  // The rule of its role's failureRules that matches, if any.
  std::optional<api::FailureDecision> RuleFor(const Member& member, const ExitStatus& status) const;
  void Obey(const api::FailureDecision& rule, Member& member, const ExitStatus& status);
  void CheckLimits();
  // Whether the budget allows it; says so on the console when not.
  bool MayReplace(const Member& member);
  // `cost` of the budget.
  void Replace(Member& member, int cost);
  // `ended`: the process whose end is the cause ("gpu-1 ended"), which the next head has to hear
  // of.
  void ReplaceAll(const std::string& cause, int cost, const Member* ended = nullptr);
  void FailForRestarts(const std::string& cause);
  void CannotStart(const Member& member, const absl::Status& error);
  const api::Role& RoleOf(const Member& member) const;
  std::optional<v1::Finished> LastWordOf(const Member& member) const;
  // Whether the trainer was asked to go, while the job goes on.
  bool HasLeft(const Member& member) const;
  void TellExit(const Member& member, const ExitStatus& status, bool replaced,
                const std::string& why_not_replaced = "");
  // The head has given up processes that still run: frozen, or out of reach. A trainer's place has
  // to be taken; so has that of the last CPU worker where trainers cannot do its work. Other CPU
  // workers may come back.
  void KillLost();
  // Nobody but the launcher can tell, or may act.
  void KillHangingHead();

  const api::HeteroTrainingJob& job_;
  const bool input_only_;
  ProcessSet& processes_;
  StatusWatch& watch_;
  Console& console_;
  base::Clock& clock_;
  HeadSilence silence_;
  RunLimits limits_;
  int64_t judged_words_ = 0;  // of the head, for limits_
  std::optional<Failure> failure_;
  int restarts_ = 0;
  std::vector<v1::ExitReport> unreported_exits_;
  bool ends_expected_ = false;
  std::optional<ExitStatus> head_exit_;
};

}  // namespace hetero::local
