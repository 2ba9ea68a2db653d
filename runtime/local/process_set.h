#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "runtime/local/child.h"
#include "runtime/local/console.h"
#include "runtime/local/processes.h"

namespace hetero::local {

// The processes of one local job: creates, ends and lists them; whether one is replaced is decided
// elsewhere (supervisor.h). Those that still run die with this object. One thread uses it.
class ProcessSet {
 public:
  struct Member {
    ProcessPlan plan;
    Child child;
    int64_t incarnation = 0;
    bool ended = false;
    std::optional<ExitStatus> exit;  // when ended
    bool leaving = false;            // told to, because its role needs fewer

    bool head() const { return plan.type == api::RoleType::kHead; }
    bool rank() const { return plan.type == api::RoleType::kGpuWorker; }
  };

  // What head and trainers print goes to `output_fd`; -1: into their logs.
  ProcessSet(const api::HeteroTrainingJob& job, ProcessPlanOptions plan, int output_fd,
             base::Clock& clock)
      : job_(job),
        plan_(std::move(plan)),
        output_fd_(output_fd),
        clock_(clock),
        began_(clock.Now()) {}

  // Once, the head first. The first error ends it.
  absl::Status StartAll();
  // A process in the place of one that has ended.
  absl::Status Start(Member& member);
  // Kills all and begins a new attempt with the same members. `on_error` hears of those that cannot
  // be started.
  void RestartAll(const std::function<void(const Member&, const absl::Status&)>& on_error);
  // Starts CPU workers of `role`, or tells them to leave, until there are `needed`. Whether any
  // was.
  bool Resize(const api::Role& role, int32_t needed, Console& console);
  void KillAll();

  std::vector<Member>& members() { return members_; }
  const Member& head() const { return members_.front(); }
  bool running() const;
  bool ranks_run() const;
  int attempt() const { return attempt_; }
  const ProcessPlanOptions& plan() const { return plan_; }
  // In the output folder, without the log's folder: "logs/gpu-0.log".
  std::string LogOf(const std::string& name) const;
  // Looks which scripts run (runtime/agent/script_listing.h), and writes the list anew when others
  // do than before.
  void FollowScripts();
  // Writes processes.json, with the scripts, for people and tests; RemoveList() removes it.
  void WriteList() const;
  void RemoveList() const;

 private:
  const api::HeteroTrainingJob& job_;
  const ProcessPlanOptions plan_;
  const int output_fd_;
  base::Clock& clock_;
  const base::Instant began_;
  std::vector<Member> members_;       // head first
  std::vector<std::string> scripts_;  // one JSON object each
  int attempt_ = 1;
  int64_t last_incarnation_ = 0;
};

}  // namespace hetero::local
