#include "tests/integration/operator/support/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace hetero::testing {

namespace {

std::vector<char*> Pointers(std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  return pointers;
}

int ExitCode(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

CommandResult RunCommand(const std::vector<std::string>& arguments, const std::string& input,
                         std::chrono::seconds deadline) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  std::vector<std::string> copy = arguments;
  std::vector<char*> argv = Pointers(copy);
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    dup2(out[1], 2);
    execvp(argv[0], argv.data());
    dprintf(2, "cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  std::thread writer([&] {
    size_t done = 0;
    while (done < input.size()) {
      const ssize_t wrote = write(in[1], input.data() + done, input.size() - done);
      if (wrote <= 0) break;
      done += wrote;
    }
    close(in[1]);
  });
  CommandResult result;
  const auto end = std::chrono::steady_clock::now() + deadline;
  char buffer[16384];
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd ready{out[0], POLLIN, 0};
    if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) == 0) {
      kill(pid, SIGKILL);
      break;
    }
    const ssize_t read = ::read(out[0], buffer, sizeof(buffer));
    if (read <= 0) break;
    result.output.append(buffer, read);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  close(out[0]);
  writer.join();
  result.exit_code = ExitCode(status);
  return result;
}

BackgroundProgram::BackgroundProgram(std::vector<std::string> arguments, std::string log_file,
                                     const std::vector<std::string>& environment)
    : log_file_(std::move(log_file)) {
  std::vector<char*> argv = Pointers(arguments);
  std::vector<std::string> variables = environment;
  pid_ = fork();
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (std::string& variable : variables) putenv(variable.data());
  const int log = open(log_file_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  dup2(log, 1);
  dup2(log, 2);
  execvp(argv[0], argv.data());
  dprintf(2, "cannot run %s: %s\n", argv[0], strerror(errno));
  _exit(127);
}

BackgroundProgram::~BackgroundProgram() {
  Signal(SIGKILL);
  Wait(std::chrono::seconds(10));
}

bool BackgroundProgram::running() {
  if (!ended_ && waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
  return !ended_;
}

void BackgroundProgram::Signal(int signal) {
  if (running()) kill(pid_, signal);
}

int BackgroundProgram::Wait(std::chrono::seconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (running()) {
    if (std::chrono::steady_clock::now() > end) return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return ExitCode(status_);
}

std::string BackgroundProgram::log() const {
  std::ifstream file(log_file_);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace hetero::testing
