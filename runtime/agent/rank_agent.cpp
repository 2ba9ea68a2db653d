#include "runtime/agent/rank_agent.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/role_type.h"
#include "base/either_stop.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/agent/head_coordinator.h"
#include "runtime/agent/master_address.h"
#include "runtime/agent/process_tree.h"
#include "runtime/agent/script_environment.h"
#include "runtime/agent/script_failure.h"
#include "runtime/agent/script_listing.h"
#include "runtime/agent/script_output.h"
#include "runtime/agent/session_feed.h"
#include "runtime/agent/stream_server.h"

namespace hetero::agent {
namespace {

constexpr base::Duration kLook = std::chrono::milliseconds(20);
// From SIGTERM to SIGKILL. Of a job that ends without saving: the head waits for two seconds.
constexpr base::Duration kEndGrace = std::chrono::seconds(10);
// For a script to save and end that was told that its stream has failed; stopGraceSeconds if
// longer.
constexpr base::Duration kFailedGrace = std::chrono::seconds(30);
constexpr int kStoppedCode = 143;  // of a script that leaves the exception Stopped to Python
constexpr base::Duration kStopGrace = std::chrono::seconds(1);
// After a stop that all agreed on, beyond the time that they have to save: for the job's end, or
// the place of the rank that leaves.
constexpr base::Duration kOthersPatience = std::chrono::seconds(30);
constexpr base::Duration kAgreePatience = std::chrono::seconds(10);  // to stop at the same step

// Nothing can be started any more. The process that takes this one's place joins the next
// generation as any replaced rank does.
[[noreturn]] void EndProcess(const absl::Status& why) {
  log::Error("ending the process, so that another takes its place", {{"reason", why.message()}});
  // What the keeper has held comes to this process (agent.cpp).
  SignalDescendants(getpid(), SIGKILL);
  // A process that leaves by itself is not replaced everywhere.
  raise(SIGKILL);
  std::_Exit(1);
}

class RankAgent {
 public:
  RankAgent(const RankAgentOptions& options, ScriptProcess* script, base::Clock& clock,
            HeadCoordinator& coordinator, process::RankSession& session)
      : options_(options),
        script_(script),
        clock_(clock),
        coordinator_(coordinator),
        session_(session),
        feed_(session) {}

  absl::Status Run() {
    HETERO_RETURN_IF_ERROR(Open());
    while (true) {
      absl::StatusOr<process::Membership::OpenGeneration> opened =
          session_.NextGeneration(generation_);
      // Another rank has left with the result: its script and this one's had ended.
      if (absl::IsOutOfRange(opened.status())) return absl::OkStatus();
      HETERO_RETURN_IF_ERROR(opened.status());
      generation_ = opened->generation.number();
      over_ = opened->over;
      const std::optional<absl::Status> end = RunGeneration(opened->generation);
      if (end) return *end;
    }
  }

 private:
  const api::Training& training() const { return session_.job().spec.training; }
  std::string FileOf(const std::string& folder, const char* ending) const {
    return absl::StrCat(folder, "/script-", session_.rank(), ending);
  }

  absl::Status Open() {
    HETERO_ASSIGN_OR_RETURN(
        stream_, StreamServer::Listen(
                     {.socket_path = script_ == nullptr ? options_.attached_socket
                                                        : FileOf(options_.socket_folder, ".sock"),
                      .local_rank = options_.session.identity.member.local_rank(),
                      .attached = script_ == nullptr,
                      .startup_deadline = StartupDeadline()},
                     feed_, coordinator_, clock_));
    if (script_ == nullptr) return absl::OkStatus();
    const bool passed_on = options_.log_folder.empty() || session_.rank() == 0;
    const std::string prefix =
        session_.rank() == 0 ? "" : absl::StrCat("[rank ", session_.rank(), "] ");
    HETERO_ASSIGN_OR_RETURN(
        output_,
        ScriptOutput::Open(
            {.source = script_->output(),
             .passed_to = passed_on ? STDOUT_FILENO : -1,
             .prefix = prefix,
             .log_file = options_.log_folder.empty() ? "" : FileOf(options_.log_folder, ".log")}));
    return absl::OkStatus();
  }

  // What ended this rank; empty: on in the next generation.
  std::optional<absl::Status> RunGeneration(const v1::Generation& generation) {
    coordinator_.BeginGeneration(generation_, over_);
    stream_->Begin(generation_, static_cast<int>(generation_ - 1));
    if (script_ == nullptr) return Attend();
    const absl::Status started = Start(generation);
    if (absl::IsAborted(started)) return WhyNot();
    if (!started.ok()) {
      ReportFailure(DescribeStartFailure(session_.rank(), generation_, started));
      return std::nullopt;
    }
    return Watch();
  }

  // Whether nothing is to be started or waited for any more in this generation.
  bool interrupted() const {
    return over_.stop_requested() || session_.stop_token().stop_requested() ||
           session_.leave_token().stop_requested();
  }
  std::optional<absl::Status> WhyNot() const {
    if (session_.stop_token().stop_requested()) return Stopped();
    if (session_.leave_token().stop_requested()) return Left();
    return std::nullopt;
  }
  static absl::Status Stopped() { return absl::CancelledError("the script was asked to stop"); }
  absl::Status Left() const {
    return absl::AbortedError(absl::StrCat("left after step ", stream_->standing().steps_given,
                                           ", as it was asked to; the other scripts start again "
                                           "when its place is taken"));
  }

  // kAborted when there is no need any more.
  absl::Status Start(const v1::Generation& generation) {
    HETERO_ASSIGN_OR_RETURN(const MasterAddress master, Agree());
    const api::Spec& spec = session_.job().spec;
    const RankPlace place = PlaceIn(generation, options_.session.identity.member);
    const int cores = process::CoresFromEnvironment();
    const ScriptEnvironment environment{
        .place = place,
        .role = options_.session.identity.member.role(),
        .run = session_.run(),
        .restart_count = static_cast<int32_t>(generation_ - 1),
        .max_restarts = spec.run_policy.max_restarts,
        .master_host = master.host,
        .master_port = master.port,
        .socket = stream_->socket_path(),
        .checkpoint_uri = spec.training.checkpoint ? spec.training.checkpoint->uri : "",
        .threads =
            options_.threads > 0 ? options_.threads : std::max(1, cores / place.local_world_size)};
    const ScriptCommand command{.arguments = training().script->command,
                                .environment = MakeEnvironment(OwnEnvironment(), environment),
                                .working_directory = options_.working_directory.empty()
                                                         ? training().script->working_directory
                                                         : options_.working_directory};
    output_->Begin(generation_);
    const absl::StatusOr<pid_t> started = script_->Start(command);
    if (script_->keeper_lost()) EndProcess(started.status());
    HETERO_RETURN_IF_ERROR(started.status());
    const pid_t pid = *started;
    log::Info("script started", {{"generation", generation_},
                                 {"rank", place.rank},
                                 {"pid", pid},
                                 {"masterPort", master.port},
                                 {"command", absl::StrJoin(command.arguments, " ")}});
    listing_.emplace(FileOf(options_.socket_folder, ".json"),
                     ListedScript{.role = environment.role,
                                  .index = options_.session.identity.member.index(),
                                  .rank = place.rank,
                                  .pid = pid});
    return absl::OkStatus();
  }

  absl::StatusOr<MasterAddress> Agree() {
    if (session_.rank() != 0) {
      const base::EitherStop interrupted(session_.stop_token(), session_.leave_token());
      return coordinator_.AwaitMaster(interrupted.token(), StartupDeadline());
    }
    MasterAddress own{.host = options_.session.identity.host};
    HETERO_ASSIGN_OR_RETURN(own.port, PickPort());
    coordinator_.TellMaster(own);
    return own;
  }

  // Until the script has ended, or is to end.
  std::optional<absl::Status> Watch() {
    std::optional<base::Instant> end_at;   // of a script that is to stop by itself
    std::optional<base::Instant> fail_at;  // of one that goes on though its stream has failed
    bool parting = false;                  // it is agreed after which step
    const base::Instant ask_by = clock_.Now() + StartupDeadline();
    while (true) {
      const absl::StatusOr<std::optional<ScriptExit>> exit = script_->AwaitExit(kLook);
      if (!exit.ok()) EndProcess(exit.status());
      if (*exit) return AfterExit(**exit);
      if (over_.stop_requested()) {
        EndScript(kEndGrace);
        return WhyNot();
      }
      const base::Instant now = clock_.Now();
      // Asked to leave in the last steps it comes to the end of its stream, and saves as well.
      const bool ends = end_at && stream_->standing().reached_end;
      if (!parting && (coordinator_.stop_after() || ends)) {
        parting = true;
        end_at = now + SaveGrace();
      } else if (!parting && session_.stop_token().stop_requested()) {
        end_at = now;
      } else if (!end_at && session_.leave_token().stop_requested()) {
        // Before all have begun there is nothing to save.
        const bool saves = training().checkpoint && stream_->standing().begun;
        end_at = saves ? now + kAgreePatience : now;
        if (saves) coordinator_.AskToStop();
      }
      if (end_at && now >= *end_at) {
        EndScript(session_.leave_token().stop_requested() ? kEndGrace : kStopGrace);
        if (parting) {
          WarnOfUnsaved(absl::StrCat("it did not end within stopGraceSeconds and was ended\n",
                                     output_->TakeTail()));
        }
        return AfterStop();
      }
      const absl::Status failure = stream_->standing().failure;
      if (failure.ok()) {
        fail_at.reset();
      } else if (fail_at = fail_at.value_or(now + std::max(kFailedGrace, SaveGrace()));
                 now >= *fail_at && !parting) {
        EndScript(kEndGrace);
        return failure;
      }
      if (!end_at && now >= ask_by && !stream_->standing().asked) {
        EndScript(kEndGrace);
        ReportFailure(
            DescribeSilence(session_.rank(), generation_, StartupDeadline(), output_->TakeTail()));
        return std::nullopt;
      }
    }
  }

  base::Duration StartupDeadline() const {
    return std::chrono::seconds(session_.job().spec.run_policy.startup_deadline_seconds);
  }
  base::Duration SaveGrace() const {
    return std::chrono::seconds(session_.job().spec.run_policy.stop_grace_seconds);
  }

  void EndScript(base::Duration grace) {
    stream_->Interrupt();
    const absl::Status ended = script_->End(grace);
    listing_.reset();
    if (!ended.ok()) log::Error("a script does not end", {{"reason", ended.message()}});
  }

  std::optional<absl::Status> AfterExit(const ScriptExit& exit) {
    const StreamServer::Standing standing = stream_->standing();
    const std::string tail = output_->TakeTail();
    log::Info("script ended", {{"generation", generation_},
                               {"rank", session_.rank()},
                               {"how", exit.ToString()},
                               {"step", standing.steps_given}});
    const bool told_to = session_.stop_token().stop_requested() ||
                         session_.leave_token().stop_requested() || over_.stop_requested();
    const bool complete = exit.ok() && HasTrained(standing);
    const bool stopped = coordinator_.stop_after() && !standing.reached_end;
    const bool failed = !told_to && !complete && !stopped && standing.failure.ok();
    const EndedScript ended{.rank = session_.rank(),
                            .generation = generation_,
                            .exit = exit,
                            .standing = standing,
                            .tail = tail};
    if (failed) ReportFailure(DescribeFailure(ended));
    const bool orderly = exit.ok() || (stopped && exit.code == kStoppedCode);
    if (stopped && !orderly) WarnOfUnsaved(DescribeFailure(ended).message());
    EndScript(orderly ? kStopGrace : base::Duration::zero());  // of what it left behind
    if (failed) return std::nullopt;
    if (session_.stop_token().stop_requested() || stopped) return AfterStop();
    if (over_.stop_requested()) return WhyNot();
    if (!standing.failure.ok()) return standing.failure;
    return complete ? AwaitOthers(standing) : WhyNot();
  }

  void ReportFailure(const v1::ScriptFailure& failure) {
    log::Warning("script failed", {{"generation", generation_}, {"reason", failure.message()}});
    session_.ReportScriptFailure(failure);
  }

  // A script that all were waiting for. Its last checkpoint may be missing or cut short.
  void WarnOfUnsaved(const std::string& how) {
    log::Warning("script may not have saved before the stop",
                 {{"generation", generation_}, {"rank", session_.rank()}, {"reason", how}});
  }

  // All scripts stop after the same step. This one's rank leaves, or goes on when all are there.
  std::optional<absl::Status> AfterStop() {
    if (const std::optional<absl::Status> end = WhyNot()) return end;
    coordinator_.TellEnded();
    const base::Instant give_up_at = clock_.Now() + SaveGrace() + kOthersPatience;
    while (!over_.stop_requested() && !WhyNot()) {
      if (coordinator_.all_ended()) return absl::OkStatus();
      if (clock_.Now() >= give_up_at) {
        session_.ReportBroken(generation_, "all scripts were to stop, and nothing came of it");
        return std::nullopt;
      }
      clock_.SleepFor(kLook);
    }
    return WhyNot();
  }

  std::optional<absl::Status> AwaitOthers(const StreamServer::Standing& standing) {
    if (!standing.reached_end) {
      log::Info("the script has ended before its stream",
                {{"step", standing.steps_given},
                 {"steps", session_.schedule().training().total_steps()}});
    }
    coordinator_.TellEnded();
    std::optional<base::Instant> leave_at;
    while (!coordinator_.all_ended()) {
      if (over_.stop_requested() || session_.stop_token().stop_requested()) return WhyNot();
      // The others end as well, or will have to do without this rank.
      if (session_.leave_token().stop_requested()) {
        if (!leave_at) leave_at = clock_.Now() + std::max(kAgreePatience, SaveGrace());
        if (clock_.Now() >= *leave_at) return Left();
      }
      clock_.SleepFor(kLook);
    }
    return absl::OkStatus();
  }

  // A script that somebody else has started, or will start.
  std::optional<absl::Status> Attend() {
    if (options_.on_listening && !std::exchange(listening_told_, true)) {
      options_.on_listening(stream_->socket_path());
    }
    bool gone = false;
    while (!gone) {
      if (interrupted()) return WhyNot();
      const StreamServer::Standing standing = stream_->standing();
      gone = standing.said_hello && !standing.connected;
      if (!gone) clock_.SleepFor(kLook);
    }
    const StreamServer::Standing standing = stream_->standing();
    if (!standing.failure.ok()) return standing.failure;
    if (!standing.misuse.ok()) return absl::InternalError(standing.misuse.message());
    if (standing.bye && standing.begun) return AwaitOthers(standing);
    return absl::CancelledError("the script has closed its connection");
  }

  const RankAgentOptions& options_;
  ScriptProcess* const script_;  // null: somebody else's
  base::Clock& clock_;
  HeadCoordinator& coordinator_;
  process::RankSession& session_;
  SessionFeed feed_;
  std::unique_ptr<StreamServer> stream_;
  std::unique_ptr<ScriptOutput> output_;
  std::optional<ScriptListing> listing_;
  int64_t generation_ = 0;
  std::stop_token over_;
  bool listening_told_ = false;
};

}  // namespace

absl::Status RunRankAgent(RankAgentOptions options, ScriptProcess* script, base::Clock& clock,
                          std::stop_token stop) {
  HeadCoordinator coordinator(clock);
  options.session.leaves_alone = true;
  options.session.on_script_decision = [&coordinator](const v1::ScriptDecision& decision) {
    coordinator.OnDecision(decision);
  };
  options.session.script_words = [&coordinator] { return coordinator.AllWords(); };
  if (script != nullptr) {
    options.session.other_cpu_seconds = [script] { return script->cpu_seconds(); };
  }
  HETERO_ASSIGN_OR_RETURN(std::unique_ptr<process::RankSession> session,
                          process::RankSession::Join(options.session, clock, std::move(stop)));
  if (!session->job().spec.training.script) {
    return session->Finish(absl::FailedPreconditionError(
        "spec.training.script is missing: this program runs scripts"));
  }
  coordinator.Connect(
      {.rank = session->rank(),
       .total_steps = session->schedule().training().total_steps(),
       .steps_per_epoch = session->schedule().training().steps_per_epoch(),
       .checkpoint = session->job().spec.training.checkpoint,
       .tell = [&session](const v1::ScriptWord& word) { session->TellScriptWord(word); }});
  absl::Status result = RankAgent(options, script, clock, coordinator, *session).Run();
  result = session->Finish(std::move(result));
  coordinator.Disconnect();
  return result;
}

}  // namespace hetero::agent
