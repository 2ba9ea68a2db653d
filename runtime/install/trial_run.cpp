#include "runtime/install/trial_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/clock.h"

namespace hetero::install {
namespace {

constexpr base::Duration kLongest = std::chrono::seconds(30);
constexpr size_t kMostOutput = 4096;

absl::StatusOr<pid_t> Start(const std::vector<std::string>& command, int output) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", command[0]));
  return pid;
}

// All that comes until the other end is closed; false when that takes too long.
bool ReadAll(int fd, std::string& output) {
  base::Clock& clock = base::Clock::Real();
  const base::Instant end = clock.Now() + kLongest;
  while (true) {
    const base::Duration left = end - clock.Now();
    if (left <= base::Duration::zero()) return false;
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = poll(&readable, 1, static_cast<int>(wait));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    char buffer[1024];
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count == 0 || (count < 0 && errno != EINTR)) return true;
    if (count > 0 && output.size() < kMostOutput) output.append(buffer, static_cast<size_t>(count));
  }
}

std::string Describe(int status) {
  if (WIFSIGNALED(status)) return absl::StrCat("was ended by signal ", WTERMSIG(status));
  return absl::StrCat("ended with code ", WEXITSTATUS(status));
}

}  // namespace

absl::StatusOr<std::string> TrialRun(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  const absl::StatusOr<pid_t> pid = Start(command, ends[1]);
  close(ends[1]);
  std::string output;
  const bool in_time = pid.ok() && ReadAll(ends[0], output);
  close(ends[0]);
  if (!pid.ok()) return pid.status();
  if (!in_time) kill(*pid, SIGKILL);
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string text(absl::StripTrailingAsciiWhitespace(output));
  if (!in_time) {
    return absl::DeadlineExceededError(
        absl::StrCat(command[0], " did not end within ", base::ToSeconds(kLongest), " s: ", text));
  }
  if (status != 0) {
    return absl::InternalError(absl::StrCat(command[0], " ", Describe(status), ": ", text));
  }
  return text;
}

}  // namespace hetero::install
