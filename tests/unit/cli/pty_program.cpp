#include "tests/unit/cli/pty_program.h"

#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace hetero::testing {
namespace {

winsize SizeOf(int columns, int rows) {
  winsize size{};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = static_cast<unsigned short>(rows);
  return size;
}

}  // namespace

PtyProgram::PtyProgram(std::vector<std::string> arguments, int columns, int rows,
                       std::vector<std::string> environment)
    : screen_(columns, rows) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  environment.emplace_back("TERM=xterm");
  const winsize size = SizeOf(columns, rows);
  pid_ = forkpty(&terminal_, nullptr, nullptr, &size);
  if (pid_ < 0) throw std::runtime_error("forkpty");
  if (pid_ == 0) {
    for (std::string& variable : environment) putenv(variable.data());
    execvp(argv[0], argv.data());
    dprintf(2, "cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(127);
  }
  reader_ = std::thread([this] {
    char buffer[4096];
    while (true) {
      const ssize_t bytes = read(terminal_, buffer, sizeof(buffer));
      if (bytes <= 0) return;
      std::lock_guard lock(mutex_);
      screen_.Feed(std::string_view(buffer, bytes));
    }
  });
}

PtyProgram::~PtyProgram() {
  if (!ended_) kill(pid_, SIGKILL);
  Wait(std::chrono::seconds(10));
  if (reader_.joinable()) reader_.join();
  close(terminal_);
}

void PtyProgram::Type(const std::string& keys) {
  if (write(terminal_, keys.data(), keys.size()) < 0) throw std::runtime_error("write to pty");
}

void PtyProgram::Resize(int columns, int rows) {
  std::lock_guard lock(mutex_);
  const winsize size = SizeOf(columns, rows);
  ioctl(terminal_, TIOCSWINSZ, &size);
  screen_.Resize(columns, rows);
}

VirtualScreen PtyProgram::screen() const {
  std::lock_guard lock(mutex_);
  return screen_;
}

bool PtyProgram::echoes() const {
  termios state{};
  return tcgetattr(terminal_, &state) == 0 && (state.c_lflag & ECHO) != 0;
}

int PtyProgram::Wait(std::chrono::seconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!ended_) {
    if (waitpid(pid_, &status_, WNOHANG) == pid_) {
      ended_ = true;
      reader_.join();  // the terminal hangs up when its last program has gone
    } else if (std::chrono::steady_clock::now() > end) {
      return -1;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

}  // namespace hetero::testing
