#include "runtime/local/launcher.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/manifest.h"
#include "base/atomic_file.h"
#include "base/listen_socket.h"
#include "base/process_usage.h"
#include "base/status_macros.h"
#include "runtime/insight/report.h"
#include "runtime/local/attachment.h"
#include "runtime/local/console.h"
#include "runtime/local/output_folder.h"
#include "runtime/local/output_pipe.h"
#include "runtime/local/process_set.h"
#include "runtime/local/socket_folder.h"
#include "runtime/local/status_watch.h"
#include "runtime/local/supervisor.h"
#include "runtime/process/fallback_report.h"
#include "runtime/process/http_address.h"

namespace hetero::local {
namespace {

constexpr base::Duration kPoll = std::chrono::milliseconds(20);
// Ctrl-C until SIGKILL; with checkpoints after stopGraceSeconds, which the head waits for.
constexpr base::Duration kStopGrace = std::chrono::seconds(4);
// A script that has attached closes its stream, which the agent judges, and then our input.
constexpr base::Duration kPartingGrace = std::chrono::seconds(2);
constexpr base::Duration kLeaveGrace = std::chrono::seconds(2);  // job ended until SIGKILL

constexpr int kFailedExit = 1;     // of a head whose job failed
constexpr int kStoppedExit = 130;  // of a head whose job was stopped

absl::StatusOr<base::Socket> OpenPage(const std::string& address) {
  if (address.empty()) return base::Socket();
  HETERO_ASSIGN_OR_RETURN(const process::HttpAddress parsed,
                          process::ParseHttpAddress("--page", address));
  return base::ListenOn(parsed.host, parsed.port);
}

// As a browser of this machine takes it.
std::string UrlOf(const std::string& address, const base::Socket& page) {
  const absl::StatusOr<process::HttpAddress> parsed = process::ParseHttpAddress("--page", address);
  std::string host = parsed.ok() ? parsed->host : "";
  if (host.empty() || host == "0.0.0.0" || host == "::") host = "127.0.0.1";
  if (host.find(':') != std::string::npos) host = absl::StrCat("[", host, "]");
  return absl::StrCat("http://", host, ":", base::PortOf(page), "/live");
}

// A run from the first process to the outcome.
class Launcher {
 public:
  Launcher(const LaunchOptions& options, SocketFolder sockets, base::Socket page,
           base::Clock& clock)
      : options_(options),
        clock_(clock),
        sockets_(std::move(sockets)),
        page_(std::move(page)),
        created_(clock.WallNow()),
        began_(clock.Now()),
        console_(clock, options.attach || options.console_on_stderr ? stderr : stdout),
        processes_(options.job, MakePlan(), output_.write_end(), clock),
        watch_(HeadAddress(processes_.plan()), base::TlsOptions{.plain_text = true}, clock),
        supervisor_(options.job, options.input_only, processes_, watch_, console_, clock) {}

  absl::StatusOr<Outcome> Run(std::stop_token stop, std::stop_token kill);

 private:
  std::string OutputFile(const std::string& name) const {
    return (std::filesystem::path(options_.output_folder) / name).string();
  }
  ProcessPlanOptions MakePlan() const;
  absl::Status PrepareFolder();
  // Once: Supervise, then what the processes printed.
  bool Look();
  void Print(const std::string& line);
  // Whether who attached has gone, and the agent has not made an end of it.
  bool Deserted();
  // Asks for the job's end, stopped or, with a failure, failed, and waits for it.
  void End(const std::optional<Supervisor::Failure>& failure, const std::stop_token& kill);
  // Waits until every process has ended, at most `grace`; the destructor kills the rest.
  void WaitForAll(base::Duration grace);
  Outcome Conclude();
  void WriteFallbackReport(v1::JobStatus::State state, const std::string& message);

  const LaunchOptions& options_;
  base::Clock& clock_;
  const SocketFolder sockets_;
  base::Socket page_;  // not open: there is none
  const base::WallTime created_;
  const base::Instant began_;
  Console console_;
  OutputPipe output_;
  ProcessSet processes_;
  StatusWatch watch_;
  Supervisor supervisor_;
  bool stopped_ = false;  // on request
  bool stream_named_ = false;
  std::optional<base::Instant> input_ended_;
};

ProcessPlanOptions Launcher::MakePlan() const {
  return {.runtime_program = options_.runtime_program,
          .trainer_program = options_.trainer_program,
          .socket_folder = sockets_.path(),
          .job_file = OutputFile("job.json"),
          .output_folder = options_.output_folder,
          .dump_stream_folder = options_.dump_stream_folder,
          .working_directory = options_.working_directory,
          .python_path = options_.python_path,
          .created_unix_ns =
              std::chrono::duration_cast<base::Duration>(created_.time_since_epoch()).count(),
          .input_only = options_.input_only,
          .ceiling_probe = options_.ceiling_probe,
          .attach = options_.attach,
          .cores = base::UsableCores(),
          .usable_gpus = options_.usable_gpus,
          .page_socket = page_.fd()};
}

absl::Status Launcher::PrepareFolder() {
  HETERO_RETURN_IF_ERROR(
      base::WriteFileAtomically(processes_.plan().job_file, api::ToJson(options_.job)));
  RemoveOldResults(options_.output_folder, options_.job);
  return absl::OkStatus();
}

bool Launcher::Look() {
  const bool head_runs = supervisor_.Look();
  output_.Forward([this](const std::string& line) { Print(line); });
  return head_runs;
}

void Launcher::Print(const std::string& line) {
  if (!options_.attach || !NamesTheStream(line)) return console_.Line(line);
  if (std::exchange(stream_named_, true)) return;  // an agent in the place of another
  fputs((line + "\n").c_str(), stdout);
  fflush(stdout);
}

bool Launcher::Deserted() {
  if (!options_.attach) return false;
  const base::Instant now = clock_.Now();
  if (!input_ended_ && InputEnded(STDIN_FILENO)) input_ended_ = now;
  if (!input_ended_ || now - *input_ended_ < kPartingGrace) return false;
  console_.Line("standard input has ended, and with it the job");
  return true;
}

absl::StatusOr<Outcome> Launcher::Run(std::stop_token stop, std::stop_token kill) {
  HETERO_RETURN_IF_ERROR(PrepareFolder());
  if (page_.open()) console_.Line("page: " + UrlOf(options_.page_address, page_));
  HETERO_RETURN_IF_ERROR(processes_.StartAll());
  bool head_runs = true;
  while (head_runs && !stop.stop_requested() && !supervisor_.failure() && !Deserted()) {
    head_runs = Look();
    if (const std::optional<v1::JobStatus> status = watch_.latest()) {
      console_.Status(DescribeStatus(*status));
      supervisor_.ApplySizing(*status);
    }
    clock_.SleepFor(kPoll, stop);
  }
  if (head_runs) {
    End(supervisor_.failure(), kill);
  } else {
    // Members leave when the head tells them; of one that was killed they would hear nothing.
    const std::optional<ExitStatus>& head = supervisor_.head_exit();
    const bool by_itself = head && head->signal == 0;
    WaitForAll(by_itself ? kLeaveGrace : base::Duration::zero());
  }
  processes_.RemoveList();
  page_ = base::Socket();  // whoever calls now would wait for nobody
  console_.Clear();
  return Conclude();
}

void Launcher::End(const std::optional<Supervisor::Failure>& failure, const std::stop_token& kill) {
  stopped_ = !failure;
  supervisor_.ExpectEnds();
  console_.Line(failure ? "failed: " + failure->message : "stopping (Ctrl-C again to kill)");
  const absl::Status asked = failure ? watch_.RequestStop(failure->message, failure->reason)
                                     : watch_.RequestStop("stopped by the user");
  if (!asked.ok()) {
    // A head that hangs passes nothing on, but any rank does.
    for (ProcessSet::Member& member : processes_.members()) {
      if (member.rank() && !member.ended) member.child.Signal(SIGTERM);
    }
  }
  const api::Spec& spec = options_.job.spec;
  base::Instant deadline = clock_.Now() + kStopGrace;
  if (spec.training.checkpoint) {
    deadline += std::chrono::seconds(spec.run_policy.stop_grace_seconds);
  }
  // One that hangs never ends: all is done once the ranks are.
  while (clock_.Now() < deadline && !kill.stop_requested() && Look() &&
         (asked.ok() || processes_.ranks_run())) {
    clock_.SleepFor(kPoll, kill);
  }
  processes_.KillAll();
  WaitForAll(std::chrono::seconds(1));
}

void Launcher::WaitForAll(base::Duration grace) {
  supervisor_.ExpectEnds();
  const base::Instant deadline = clock_.Now() + grace;
  while (clock_.Now() < deadline) {
    Look();
    if (!processes_.running()) break;
    clock_.SleepFor(kPoll);
  }
  output_.Forward([this](const std::string& line) { Print(line); });
}

void Launcher::WriteFallbackReport(v1::JobStatus::State state, const std::string& message) {
  const ProcessPlanOptions& plan = processes_.plan();
  const process::HeadlessEnd end{.job = options_.job,
                                 .run = absl::StrCat(plan.created_unix_ns),
                                 .history_file = HistoryFile(plan),
                                 .created = created_,
                                 .attempt = processes_.attempt(),
                                 .state = state,
                                 .message = message};
  const absl::Status written =
      insight::WriteReport(process::MakeFallbackReport(end, clock_), options_.output_folder);
  if (!written.ok()) console_.Line(absl::StrCat("no report: ", written.message()));
}

// The head's exit code is the job's outcome; it has printed the summary and written the report
// itself, unless it could not.
Outcome Launcher::Conclude() {
  const std::optional<ExitStatus>& head = supervisor_.head_exit();
  Outcome outcome = Outcome::kFailed;
  if (head && head->signal == 0) {
    if (head->code == 0) outcome = Outcome::kSucceeded;
    if (head->code == kStoppedExit) outcome = Outcome::kStopped;
  } else if (stopped_) {
    outcome = Outcome::kStopped;
  }
  std::error_code ignored;
  // A head that was on its way out for another reason, or was gone, has not heard of the failure.
  const std::optional<Supervisor::Failure>& failure = supervisor_.failure();
  if (failure && outcome != Outcome::kSucceeded) {
    const bool told = head && head->signal == 0 && head->code == kFailedExit;
    outcome = Outcome::kFailed;
    if (!told) WriteFallbackReport(v1::JobStatus::FAILED, failure->message);
  }
  // A head that succeeded and wrote none has said why, and there is no better one to write.
  if (outcome != Outcome::kSucceeded &&
      !std::filesystem::exists(OutputFile("report.json"), ignored)) {
    const std::string message =
        outcome == Outcome::kStopped
            ? "stopped on request"
            : absl::StrCat("the head ended: ", head ? head->ToString() : "unknown", "; see ",
                           processes_.LogOf(processes_.head().plan.name));
    if (outcome == Outcome::kFailed) console_.Line("failed: " + message);
    WriteFallbackReport(
        outcome == Outcome::kStopped ? v1::JobStatus::STOPPED : v1::JobStatus::FAILED, message);
  }
  std::filesystem::remove(HistoryFile(processes_.plan()), ignored);
  if (std::filesystem::exists(OutputFile("report.json"), ignored)) {
    console_.Line(absl::StrCat("report: ", OutputFile("report.html"), "\n        ",
                               OutputFile("report.json")));
  }
  return outcome;
}

}  // namespace

absl::StatusOr<Outcome> RunLocal(const LaunchOptions& options, base::Clock& clock,
                                 std::stop_token stop, std::stop_token kill) {
  HETERO_ASSIGN_OR_RETURN(SocketFolder sockets, SocketFolder::Create());
  HETERO_ASSIGN_OR_RETURN(base::Socket page, OpenPage(options.page_address));
  return Launcher(options, std::move(sockets), std::move(page), clock)
      .Run(std::move(stop), std::move(kill));
}

}  // namespace hetero::local
