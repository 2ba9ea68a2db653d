#include "runtime/agent/script_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/agent/keeper_process.h"
#include "runtime/agent/process_tree.h"

namespace hetero::agent {
namespace {

using Kind = KeeperHeader::Kind;
// The keeper's own, and more.
constexpr base::Duration kEndPatience = std::chrono::seconds(15);

ScriptExit ExitOf(int64_t status) {
  const auto raw = static_cast<int>(status);
  if (WIFSIGNALED(raw)) return {.signal = WTERMSIG(raw)};
  return {.code = WEXITSTATUS(raw)};
}

std::string WhereOf(const ScriptCommand& command) {
  return command.working_directory.empty() ? "" : absl::StrCat(" in ", command.working_directory);
}

absl::Status CannotFind(const ScriptCommand& command, int error) {
  const std::string what =
      absl::StrCat("cannot run ", command.arguments[0], WhereOf(command), ": ", strerror(error));
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(absl::StrCat(
          what,
          "; spec.training.script.command[0] names a program in the PATH or a file, which "
          "must be there with its interpreter"));
    case EACCES:
      return absl::PermissionDeniedError(absl::StrCat(
          what, "; the file must be executable, and its file system not mounted with noexec"));
    case EAGAIN:
    case ENOMEM:
      return absl::UnavailableError(what);
    default:
      return absl::FailedPreconditionError(what);
  }
}

absl::Status StartError(const ScriptCommand& command, const KeeperHeader& answer) {
  const auto error = static_cast<int>(answer.value);
  if (answer.kind == Kind::kCannotFind) return CannotFind(command, error);
  if (answer.kind == Kind::kCannotEnter) {
    return absl::FailedPreconditionError(absl::StrCat("spec.training.script.workingDirectory ",
                                                      command.working_directory, ": ",
                                                      strerror(error)));
  }
  return absl::UnavailableError(
      absl::StrCat("no process for ", command.arguments[0], ": ", strerror(error)));
}

}  // namespace

std::string ScriptExit::ToString() const {
  if (signal == 0) return absl::StrCat("exit code ", code);
  const char* name = sigabbrev_np(signal);
  return absl::StrCat("killed by SIG", name != nullptr ? name : std::to_string(signal).c_str());
}

absl::StatusOr<std::vector<std::unique_ptr<ScriptProcess>>> ScriptProcess::ForkKeepers(int count) {
  std::vector<std::unique_ptr<ScriptProcess>> processes;
  for (int i = 0; i < count; ++i) {
    int sockets[2] = {-1, -1};
    int output[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0 ||
        pipe2(output, O_CLOEXEC) != 0) {
      return absl::UnavailableError(absl::StrCat("no pipe for a script: ", strerror(errno)));
    }
    const pid_t pid = fork();
    if (pid < 0) {
      return absl::UnavailableError(absl::StrCat("no process for a script: ", strerror(errno)));
    }
    if (pid == 0) {
      // An end that another keeper held open would hide from its own that the agent has gone.
      for (const auto& other : processes) {
        close(other->socket_);
        close(other->output_);
      }
      close(sockets[0]);
      close(output[0]);
      RunKeeper(sockets[1], output[1]);
    }
    close(sockets[1]);
    close(output[1]);
    fcntl(output[0], F_SETFL, O_NONBLOCK);
    processes.emplace_back(new ScriptProcess(sockets[0], output[0], pid));
  }
  return processes;
}

ScriptProcess::~ScriptProcess() {
  close(socket_);  // which ends the keeper, and it the script
  waitpid(keeper_, nullptr, 0);
  close(output_);
}

bool ScriptProcess::Readable(base::Duration patience) const {
  pollfd wanted{.fd = socket_, .events = POLLIN};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  return poll(&wanted, 1, static_cast<int>(std::max<int64_t>(left, 0))) > 0;
}

absl::Status ScriptProcess::LoseKeeper() {
  running_ = false;
  keeper_lost_ = true;
  return absl::UnavailableError(
      "the process that keeps the script's processes was killed, or does not answer");
}

absl::StatusOr<KeeperMessage> ScriptProcess::WaitForAnswer(base::Duration patience) {
  const base::Clock& clock = base::Clock::Real();
  const base::Instant deadline = clock.Now() + patience;
  while (Readable(deadline - clock.Now())) {
    std::optional<KeeperMessage> message = ReceiveMessage(socket_);
    if (!message) return LoseKeeper();
    if (message->header.kind != Kind::kExited) return *std::move(message);
    running_ = false;
    exit_ = ExitOf(message->header.value);
  }
  // Its answer, when it still comes, would be taken for the next one.
  keeper_lost_ = true;
  return absl::DeadlineExceededError(
      absl::StrCat("the process that keeps the script's processes did not answer within ",
                   base::ToSeconds(patience), " s"));
}

absl::StatusOr<pid_t> ScriptProcess::Start(const ScriptCommand& command, base::Duration patience) {
  exit_.reset();
  if (keeper_lost_ || !SendMessage(socket_, Kind::kStart, 0, Encode(command))) return LoseKeeper();
  HETERO_ASSIGN_OR_RETURN(const KeeperMessage answer, WaitForAnswer(patience));
  if (answer.header.kind != Kind::kStarted) return StartError(command, answer.header);
  running_ = true;
  return static_cast<pid_t>(answer.header.value);
}

absl::StatusOr<std::optional<ScriptExit>> ScriptProcess::AwaitExit(base::Duration patience) {
  while (running_ && Readable(patience)) {
    const std::optional<KeeperMessage> message = ReceiveMessage(socket_);
    if (!message) return LoseKeeper();
    if (message->header.kind != Kind::kExited) continue;
    running_ = false;
    exit_ = ExitOf(message->header.value);
  }
  return exit_;
}

double ScriptProcess::cpu_seconds() const { return CpuSecondsOf(keeper_); }

void ScriptProcess::Signal(int signal) {
  if (running_) SendMessage(socket_, Kind::kSignal, signal);
}

absl::Status ScriptProcess::End(base::Duration grace) {
  if (keeper_lost_ || !SendMessage(socket_, Kind::kEnd, grace.count())) return LoseKeeper();
  HETERO_ASSIGN_OR_RETURN(const KeeperMessage answer, WaitForAnswer(grace + kEndPatience));
  running_ = false;
  if (answer.header.value == 0) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat(answer.header.value,
                   " processes of the script did not end after SIGKILL: they wait inside the "
                   "kernel, for a device or a file system"));
}

}  // namespace hetero::agent
