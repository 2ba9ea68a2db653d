#include "runtime/local/launcher.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/process_usage.h"
#include "base/status_macros.h"
#include "operator/api/manifest.h"
#include "runtime/insight/report.h"
#include "runtime/local/child.h"
#include "runtime/local/console.h"
#include "runtime/local/output_pipe.h"
#include "runtime/local/processes.h"
#include "runtime/local/socket_folder.h"
#include "runtime/local/status_watch.h"

namespace hetero::local {
namespace {

constexpr base::Duration kPoll = std::chrono::milliseconds(20);
constexpr base::Duration kStopGrace = std::chrono::seconds(4);         // Ctrl-C until SIGKILL
constexpr base::Duration kCheckpointGrace = std::chrono::seconds(24);  // the same with a checkpoint
constexpr base::Duration kLeaveGrace = std::chrono::seconds(2);        // job ended until SIGKILL

constexpr int kStoppedExit = 130;  // of a head whose job was stopped

class Launcher {
 public:
  Launcher(const LaunchOptions& options, SocketFolder sockets, base::Clock& clock)
      : options_(options),
        clock_(clock),
        sockets_(std::move(sockets)),
        created_(clock.WallNow()),
        console_(clock) {}

  absl::StatusOr<Outcome> Run(std::stop_token stop, std::stop_token kill);

 private:
  struct Member {
    ProcessPlan plan;
    Child child;
    int64_t incarnation = 0;
    bool ended = false;
    std::optional<ExitStatus> exit;  // when ended
    bool leaving = false;            // told to, because its role needs fewer
  };

  std::string OutputFile(const std::string& name) const {
    return (std::filesystem::path(options_.output_folder) / name).string();
  }
  absl::Status StartAll();
  absl::Status Start(Member& member);
  // Starts and ends CPU workers as the head asks for, when the job wants that.
  void ApplySizing(const v1::JobStatus& status);
  bool Resize(const api::Role& role, int32_t needed);
  // Notices ended processes; replaces CPU workers. Returns whether the head still runs.
  bool Supervise();
  void OnExit(Member& member, const ExitStatus& status);
  // Whether the budget allows it; says so on the console when not.
  bool MayReplace(const Member& member);
  void Replace(Member& member);
  void ReplaceAll(const std::string& cause);
  void TellExit(const Member& member, const ExitStatus& status, bool replaced);
  // The head has given up a trainer whose process still runs: frozen, or out of reach.
  void KillLostTrainers();
  void WriteProcessList();
  // Waits until every process has ended, at most `grace`; the destructor kills the rest.
  void WaitForAll(base::Duration grace);
  Outcome Conclude();
  void WriteFallbackReport(const std::string& state, const std::string& message);

  const LaunchOptions& options_;
  base::Clock& clock_;
  const SocketFolder sockets_;
  const base::WallTime created_;
  Console console_;
  OutputPipe output_;
  ProcessPlanOptions plan_;
  std::vector<Member> members_;  // head first
  std::unique_ptr<StatusWatch> watch_;
  int restarts_ = 0;
  int attempt_ = 1;
  std::vector<v1::ExitReport> unreported_exits_;
  bool stopping_ = false;  // on request
  bool leaving_ = false;   // ends of processes are no news any more
  std::optional<ExitStatus> head_exit_;
};

absl::Status Launcher::StartAll() {
  const std::string job_file = OutputFile("job.json");
  HETERO_RETURN_IF_ERROR(base::WriteFileAtomically(job_file, api::ToJson(options_.job)));
  std::error_code ignored;
  for (const char* stale : {"report.json", "report.html", "model.safetensors"}) {
    std::filesystem::remove(OutputFile(stale), ignored);
  }
  std::filesystem::remove_all(OutputFile("logs"), ignored);
  if (!options_.job.spec.training.checkpoint) {  // else the curves go on where they ended
    std::filesystem::remove_all(OutputFile("tensorboard"), ignored);
  }
  std::filesystem::create_directories(OutputFile("logs"), ignored);

  plan_ = {.runtime_program = options_.runtime_program,
           .trainer_program = options_.trainer_program,
           .socket_folder = sockets_.path(),
           .job_file = job_file,
           .output_folder = options_.output_folder,
           .dump_stream_folder = options_.dump_stream_folder,
           .created_unix_ns =
               std::chrono::duration_cast<base::Duration>(created_.time_since_epoch()).count(),
           .input_only = options_.input_only,
           .ceiling_probe = options_.ceiling_probe,
           .cores = base::UsableCores()};
  for (ProcessPlan& process : PlanProcesses(options_.job, plan_)) {
    members_.push_back({.plan = std::move(process)});
    HETERO_RETURN_IF_ERROR(Start(members_.back()));
  }
  watch_ = std::make_unique<StatusWatch>(HeadAddress(plan_), base::TlsOptions{.plain_text = true},
                                         clock_);
  WriteProcessList();
  return absl::OkStatus();
}

absl::Status Launcher::Start(Member& member) {
  member.incarnation =
      std::chrono::duration_cast<base::Duration>(clock_.WallNow().time_since_epoch()).count();
  const bool prints = member.plan.type != api::RoleType::kCpuWorker;
  HETERO_ASSIGN_OR_RETURN(member.child,
                          Child::Start(member.plan, attempt_, member.incarnation,
                                       OutputFile(absl::StrCat("logs/", member.plan.name, ".log")),
                                       prints ? output_.write_end() : -1));
  member.ended = false;
  member.exit.reset();
  return absl::OkStatus();
}

void Launcher::ApplySizing(const v1::JobStatus& status) {
  if (options_.job.spec.autoscaling != api::Switch::kEnabled ||
      status.state() != v1::JobStatus::RUNNING) {
    return;
  }
  for (const v1::RoleSizing& sizing : status.sizing()) {
    for (const api::Role& role : options_.job.spec.roles) {
      if (role.name != sizing.role() || role.type != api::RoleType::kCpuWorker) continue;
      if (!Resize(role, sizing.needed_replicas())) continue;
      console_.Line(absl::StrCat(
          role.name, ": ", sizing.needed_replicas(),
          sizing.needed_replicas() == 1 ? " replica now; " : " replicas now; ", sizing.reason()));
      WriteProcessList();
    }
  }
}

// Whether anything was started or told to leave.
bool Launcher::Resize(const api::Role& role, int32_t needed) {
  bool changed = false;
  std::vector<bool> there(static_cast<size_t>(std::max(needed, 0)));
  for (Member& member : members_) {
    if (member.plan.role != role.name) continue;
    const auto index = static_cast<size_t>(member.plan.index);
    // A name is free again when its process has ended; one that failed for good is not tried again.
    if (index < there.size()) there[index] = !(member.ended && member.leaving);
    if (index < there.size() || member.ended || member.leaving) continue;
    member.leaving = changed = true;
    member.child.Signal(SIGTERM);
  }
  for (size_t i = 0; i < there.size(); ++i) {
    if (there[i]) continue;
    const auto index = static_cast<int32_t>(i);
    std::erase_if(members_, [&](const Member& m) {
      return m.plan.role == role.name && m.plan.index == index;
    });
    members_.push_back({.plan = PlanCpuWorker(options_.job, plan_, role, index)});
    if (const absl::Status started = Start(members_.back()); !started.ok()) {
      console_.Line(absl::StrCat(members_.back().plan.name, ": ", started.message()));
      members_.pop_back();
      continue;
    }
    changed = true;
  }
  return changed;
}

bool Launcher::Supervise() {
  bool changed = false;
  for (Member& member : members_) {
    if (member.ended) continue;
    const std::optional<ExitStatus> status = member.child.Poll();
    if (!status) continue;
    member.ended = changed = true;
    member.exit = status;
    OnExit(member, *status);
  }
  if (changed) WriteProcessList();
  KillLostTrainers();
  // A head that is still starting hears of it later.
  while (!unreported_exits_.empty() && watch_->ReportExit(unreported_exits_.front()).ok()) {
    unreported_exits_.erase(unreported_exits_.begin());
  }
  return !members_[0].ended;
}

void Launcher::OnExit(Member& member, const ExitStatus& status) {
  const bool head = member.plan.type == api::RoleType::kHead;
  if (head) head_exit_ = status;
  // A head that exits by itself has given its verdict.
  if (stopping_ || leaving_ || member.leaving || status.ok() || (head && status.signal == 0))
    return;
  console_.Line(absl::StrCat(member.plan.name, " ended: ", status.ToString(), "; see ",
                             OutputFile(absl::StrCat("logs/", member.plan.name, ".log"))));
  // A trainer that exits by itself has told the head why, and would fail again.
  const bool rank = member.plan.type == api::RoleType::kGpuWorker;
  const bool final = rank && (status.signal == 0 || options_.input_only);
  const bool replaced = !final && MayReplace(member);
  if (replaced && member.plan.gang) {
    ReplaceAll(member.plan.name);
    return;
  }
  if (!head) TellExit(member, status, replaced);
  if (replaced) Replace(member);
}

bool Launcher::MayReplace(const Member& member) {
  const int limit = options_.job.spec.run_policy.max_restarts;
  if (restarts_ < limit) return true;
  console_.Line(absl::StrCat(member.plan.name, " is not replaced: runPolicy.maxRestarts (", limit,
                             ") is used up"));
  return false;
}

void Launcher::TellExit(const Member& member, const ExitStatus& status, bool replaced) {
  v1::ExitReport report;
  report.set_role(member.plan.role);
  report.set_index(member.plan.index);
  report.set_exit_code(status.code);
  report.set_signal(status.signal);
  report.set_message(absl::StrCat("the process ended: ", status.ToString(), "; see logs/",
                                  member.plan.name, ".log"));
  report.set_replaced(replaced);
  report.set_incarnation(member.incarnation);
  unreported_exits_.push_back(std::move(report));
}

void Launcher::Replace(Member& member) {
  ++restarts_;
  if (const absl::Status started = Start(member); !started.ok()) {
    console_.Line(absl::StrCat(member.plan.name, ": ", started.message()));
    return;
  }
  console_.Line(absl::StrCat(member.plan.name, " is started again (restart ", restarts_, " of ",
                             options_.job.spec.run_policy.max_restarts, ")"));
  if (member.plan.type != api::RoleType::kHead) return;
  head_exit_.reset();
  std::erase_if(unreported_exits_, [](const v1::ExitReport& report) { return report.replaced(); });
  // The new head cannot know of those who have left.
  for (const Member& other : members_) {
    if (other.plan.type == api::RoleType::kGpuWorker && other.exit && other.exit->ok()) {
      TellExit(other, *other.exit, /*replaced=*/false);
    }
  }
}

// restartScope Gang: a new attempt of the whole job, from its last checkpoint.
void Launcher::ReplaceAll(const std::string& cause) {
  ++restarts_;
  ++attempt_;
  console_.Line(absl::StrCat("attempt ", attempt_, " begins, because ", cause, " ended (restart ",
                             restarts_, " of ", options_.job.spec.run_policy.max_restarts, ")"));
  unreported_exits_.clear();
  head_exit_.reset();
  for (Member& member : members_) {
    if (!member.ended) member.child.Signal(SIGKILL);
  }
  for (Member& member : members_) member.child = Child();  // waits for its end
  for (Member& member : members_) {
    if (const absl::Status started = Start(member); !started.ok()) {
      member.ended = true;
      console_.Line(absl::StrCat(member.plan.name, ": ", started.message()));
    }
  }
}

void Launcher::KillLostTrainers() {
  if (stopping_ || leaving_) return;
  const std::optional<v1::JobStatus> status = watch_->latest();
  if (!status) return;
  for (const v1::MemberStatus& lost : status->members()) {
    if (!lost.lost()) continue;
    for (Member& member : members_) {
      if (member.plan.type == api::RoleType::kGpuWorker && member.plan.role == lost.role() &&
          member.plan.index == lost.index() && member.incarnation == lost.incarnation() &&
          !member.ended) {
        member.child.Signal(SIGKILL);
      }
    }
  }
}

void Launcher::WriteProcessList() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Member& member : members_) {
    if (member.ended) continue;
    list.push_back({{"name", member.plan.name},
                    {"role", member.plan.role},
                    {"index", member.plan.index},
                    {"pid", member.child.pid()}});
  }
  base::WriteFileAtomically(OutputFile("processes.json"), list.dump(2) + "\n").IgnoreError();
}

void Launcher::WaitForAll(base::Duration grace) {
  leaving_ = true;
  const base::Instant deadline = clock_.Now() + grace;
  while (clock_.Now() < deadline) {
    Supervise();
    output_.Forward(console_);
    bool running = false;
    for (const Member& member : members_) running |= !member.ended;
    if (!running) break;
    clock_.SleepFor(kPoll);
  }
  output_.Forward(console_);
}

void Launcher::WriteFallbackReport(const std::string& state, const std::string& message) {
  insight::Report report;
  report.job = options_.job.metadata.name;
  report.state = state;
  report.message = message;
  report.seed = options_.job.spec.training.seed;
  report.wall_seconds = base::ToSeconds(clock_.WallNow() - created_);
  report.config_json = api::ToJson(options_.job);
  const absl::Status written = insight::WriteReport(report, options_.output_folder);
  if (!written.ok()) console_.Line(absl::StrCat("no report: ", written.message()));
}

// The head's exit code is its verdict; it has printed the summary and written the report itself,
// unless it could not.
Outcome Launcher::Conclude() {
  Outcome outcome = Outcome::kFailed;
  if (head_exit_ && head_exit_->signal == 0) {
    if (head_exit_->code == 0) outcome = Outcome::kSucceeded;
    if (head_exit_->code == kStoppedExit) outcome = Outcome::kStopped;
  } else if (stopping_) {
    outcome = Outcome::kStopped;
  }
  std::error_code ignored;
  // A head that succeeded and wrote none has said why, and there is no better one to write.
  if (outcome != Outcome::kSucceeded &&
      !std::filesystem::exists(OutputFile("report.json"), ignored)) {
    const std::string head_log = OutputFile("logs/" + members_[0].plan.name + ".log");
    const std::string message =
        outcome == Outcome::kStopped
            ? "stopped on request"
            : absl::StrCat("the head ended: ", head_exit_ ? head_exit_->ToString() : "unknown",
                           "; see ", head_log);
    if (outcome == Outcome::kFailed) console_.Line("failed: " + message);
    WriteFallbackReport(outcome == Outcome::kStopped ? "Stopped" : "Failed", message);
  }
  if (std::filesystem::exists(OutputFile("report.json"), ignored)) {
    console_.Line(absl::StrCat("report: ", OutputFile("report.html"), "\n        ",
                               OutputFile("report.json")));
  }
  return outcome;
}

absl::StatusOr<Outcome> Launcher::Run(std::stop_token stop, std::stop_token kill) {
  HETERO_RETURN_IF_ERROR(StartAll());
  bool head_runs = true;
  while (head_runs && !stop.stop_requested()) {
    head_runs = Supervise();
    output_.Forward(console_);
    if (const std::optional<v1::JobStatus> status = watch_->latest()) {
      console_.Status(DescribeStatus(*status));
      ApplySizing(*status);
    }
    clock_.SleepFor(kPoll, stop);
  }
  if (head_runs) {
    stopping_ = true;
    console_.Line("stopping (Ctrl-C again to kill)");
    watch_->RequestStop("stopped by the user").IgnoreError();
    const base::Instant deadline =
        clock_.Now() + (options_.job.spec.training.checkpoint ? kCheckpointGrace : kStopGrace);
    while (clock_.Now() < deadline && !kill.stop_requested() && Supervise()) {
      output_.Forward(console_);
      clock_.SleepFor(kPoll, kill);
    }
    for (Member& member : members_) {
      if (!member.ended) member.child.Signal(SIGKILL);
    }
    WaitForAll(std::chrono::seconds(1));
  } else {
    // Members leave when the head tells them; of one that was killed they would hear nothing.
    WaitForAll(head_exit_->signal == 0 ? kLeaveGrace : base::Duration::zero());
  }
  std::error_code ignored;
  std::filesystem::remove(OutputFile("processes.json"), ignored);
  console_.Clear();
  return Conclude();
}

}  // namespace

absl::StatusOr<Outcome> RunLocal(const LaunchOptions& options, base::Clock& clock,
                                 std::stop_token stop, std::stop_token kill) {
  HETERO_ASSIGN_OR_RETURN(SocketFolder sockets, SocketFolder::Create());
  return Launcher(options, std::move(sockets), clock).Run(std::move(stop), std::move(kill));
}

}  // namespace hetero::local
