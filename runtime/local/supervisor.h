#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/hetero_training_job.h"
#include "hetero/v1/status.pb.h"
#include "runtime/local/console.h"
#include "runtime/local/process_set.h"
#include "runtime/local/status_watch.h"

namespace hetero::local {

// What the operator is to a job's pods: notices processes that ended or that the head has given up,
// replaces them while the budget (runPolicy.maxRestarts) lasts, tells the head, and follows its
// word about how many CPU workers are needed. One thread uses it.
class Supervisor {
 public:
  Supervisor(const api::HeteroTrainingJob& job, bool input_only, ProcessSet& processes,
             StatusWatch& watch, Console& console)
      : job_(job),
        input_only_(input_only),
        processes_(processes),
        watch_(watch),
        console_(console) {}

  // Whether the head still runs.
  bool Look();
  // Starts and ends CPU workers as the head asks for, when the job wants that.
  void ApplySizing(const v1::JobStatus& status);
  // From now on ends of processes are no news.
  void ExpectEnds() { ends_expected_ = true; }
  // How the head ended; empty while it runs.
  const std::optional<ExitStatus>& head_exit() const { return head_exit_; }

 private:
  using Member = ProcessSet::Member;

  void OnExit(Member& member, const ExitStatus& status);
  // Whether the budget allows it; says so on the console when not.
  bool MayReplace(const Member& member);
  void Replace(Member& member);
  void ReplaceAll(const Member& cause, const ExitStatus& status);
  void TellExit(const Member& member, const ExitStatus& status, bool replaced,
                const std::string& why_not_replaced = "");
  // The head has given up a trainer whose process still runs: frozen, or out of reach.
  void KillLostTrainers();

  const api::HeteroTrainingJob& job_;
  const bool input_only_;
  ProcessSet& processes_;
  StatusWatch& watch_;
  Console& console_;
  int restarts_ = 0;
  std::vector<v1::ExitReport> unreported_exits_;
  bool ends_expected_ = false;
  std::optional<ExitStatus> head_exit_;
};

}  // namespace hetero::local
