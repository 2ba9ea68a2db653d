#include "runtime/local/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/process_environment.h"

extern char** environ;

namespace hetero::local {
namespace {

namespace environment = api::environment;
std::vector<std::string> Environment(const ProcessPlan& plan, int32_t attempt,
                                     int64_t incarnation) {
  std::vector<std::string> result;
  for (const auto& [key, value] : plan.environment) result.push_back(key + "=" + value);
  result.push_back(absl::StrCat(environment::kAttempt, "=", attempt));
  result.push_back(absl::StrCat(environment::kIncarnation, "=", incarnation));
  result.push_back(absl::StrCat(environment::kParentPid, "=", getpid()));
  // Last: of two equal names getenv() takes the first.
  for (char** entry = environ; *entry != nullptr; ++entry) result.emplace_back(*entry);
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string ExitStatus::ToString() const {
  if (signal == 0) return absl::StrCat("exit code ", code);
  const char* name = sigabbrev_np(signal);
  return absl::StrCat("killed by SIG", name != nullptr ? name : std::to_string(signal).c_str());
}

absl::StatusOr<Child> Child::Start(const ProcessPlan& plan, int32_t attempt, int64_t incarnation,
                                   const std::string& log_file, int stdout_fd) {
  const int log = open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) {
    return absl::UnavailableError(absl::StrCat(log_file, ": ", strerror(errno)));
  }
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, stdout_fd >= 0 ? stdout_fd : log, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, log, STDERR_FILENO);
  // To itself: then it is not closed.
  for (const int file : plan.inherited) posix_spawn_file_actions_adddup2(&files, file, file);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGCHLD}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<std::string> arguments = plan.command;
  std::vector<std::string> environment = Environment(plan, attempt, incarnation);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, arguments[0].c_str(), &files, &attributes,
                                Pointers(arguments).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  close(log);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot start ", plan.name, " (", arguments[0], "): ", strerror(error)));
  }
  return Child(pid);
}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), exit_(other.exit_) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(exit_, other.exit_);
  return *this;
}

Child::~Child() {
  if (pid_ < 0 || exit_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::optional<ExitStatus> Child::Poll() {
  if (exit_) return exit_;
  int status = 0;
  const pid_t ended = waitpid(pid_, &status, WNOHANG);
  if (ended < 0 && errno == ECHILD) return exit_ = ExitStatus{.code = -1};  // somebody has taken it
  if (ended != pid_) return std::nullopt;
  exit_ = WIFSIGNALED(status) ? ExitStatus{.signal = WTERMSIG(status)}
                              : ExitStatus{.code = WEXITSTATUS(status)};
  return exit_;
}

void Child::Signal(int signal) {
  if (pid_ > 0 && !exit_) kill(pid_, signal);
}

}  // namespace hetero::local
