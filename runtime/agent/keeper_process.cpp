#include "runtime/agent/keeper_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "runtime/agent/keeper_messages.h"
#include "runtime/agent/process_tree.h"

extern char** environ;

namespace hetero::agent {
namespace {

using Kind = KeeperHeader::Kind;
constexpr int kLookMilliseconds = 20;  // between two looks at processes that are to end
// For those that a dead script has left behind; what it wrote to them is not lost.
constexpr base::Duration kOrphanGrace = std::chrono::seconds(2);
// After SIGKILL. Who is still there then waits inside the kernel for a device.
constexpr base::Duration kKillPatience = std::chrono::seconds(10);

struct StartFailure {
  Kind kind;
  int error;
};

[[noreturn]] void Fail(int report, Kind kind) {
  const StartFailure failure{kind, errno};
  [[maybe_unused]] const ssize_t written = write(report, &failure, sizeof failure);
  _exit(127);
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Becomes the script. `report` closes by itself when that has worked.
[[noreturn]] void Become(ScriptCommand command, pid_t keeper, int output, int report) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != keeper) _exit(127);
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  if (nothing > STDERR_FILENO) close(nothing);
  if (!command.working_directory.empty() && chdir(command.working_directory.c_str()) != 0) {
    Fail(report, Kind::kCannotEnter);
  }
  std::vector<char*> environment = Pointers(command.environment);
  environ = environment.data();
  execvp(command.arguments[0].c_str(), Pointers(command.arguments).data());
  Fail(report, Kind::kCannotFind);
}

class Keeper {
 public:
  Keeper(int socket, int output) : socket_(socket), output_(output), self_(getpid()) {}

  [[noreturn]] void Run() {
    PrepareSignals();
    while (true) {
      pollfd wanted[] = {{.fd = socket_, .events = POLLIN}, {.fd = signals_, .events = POLLIN}};
      poll(wanted, 2, ending() ? kLookMilliseconds : -1);
      if (wanted[1].revents != 0) DrainSignals();
      Reap();
      if (wanted[0].revents != 0) Hear();
      if (ending()) End();
    }
  }

 private:
  void PrepareSignals() {
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) signal(number, SIG_IGN);
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_SETMASK, &children, nullptr);
    signals_ = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, "script-keeper");
  }

  void DrainSignals() const {
    signalfd_siginfo info;
    while (read(signals_, &info, sizeof info) > 0) {
    }
  }

  bool ending() const { return end_asked_; }

  void Hear() {
    const std::optional<KeeperMessage> message = ReceiveMessage(socket_);
    if (!message) EndWithAgent();
    switch (message->header.kind) {
      case Kind::kStart:
        Start(DecodeCommand(message->bytes));
        break;
      case Kind::kSignal:
        if (script_ > 0) kill(script_, static_cast<int>(message->header.value));
        break;
      case Kind::kEnd:
        BeginEnd(base::Duration(message->header.value));
        break;
      default:
        break;
    }
  }

  void Start(ScriptCommand command) {
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0) {
      SendMessage(socket_, Kind::kCannotStart, errno);
      return;
    }
    const pid_t pid = fork();
    if (pid == 0) Become(std::move(command), self_, output_, report[1]);
    const int fork_error = errno;
    close(report[1]);
    StartFailure failure{Kind::kCannotStart, fork_error};
    const bool failed = pid < 0 || read(report[0], &failure, sizeof failure) ==
                                       static_cast<ssize_t>(sizeof failure);
    close(report[0]);
    if (failed) {
      if (pid > 0) waitpid(pid, nullptr, 0);
      SendMessage(socket_, failure.kind, failure.error);
      return;
    }
    script_ = pid;
    SendMessage(socket_, Kind::kStarted, pid);
  }

  // Whether any process is left below this one.
  bool Reap() {
    while (true) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG);
      if (pid < 0 && errno == EINTR) continue;
      if (pid == 0) return true;
      if (pid < 0) return false;
      if (pid != script_) continue;
      script_ = -1;
      SendMessage(socket_, Kind::kExited, status);
    }
  }

  // The script first: its children may be part of how it ends in order.
  void BeginEnd(base::Duration grace) {
    end_asked_ = true;
    orphans_asked_ = false;
    kill_at_ = clock_.Now() + grace;
    if (script_ > 0) kill(script_, SIGTERM);
  }

  void End() {
    const base::Instant now = clock_.Now();
    if (!Reap()) {
      SayAllEnded(0);
    } else if (now >= kill_at_) {
      const int left = SignalDescendants(self_, SIGKILL);
      if (now >= kill_at_ + kKillPatience) SayAllEnded(std::max(left, 1));
    } else if (script_ < 0 && !orphans_asked_) {
      orphans_asked_ = true;
      kill_at_ = std::min(kill_at_, now + kOrphanGrace);
      SignalDescendants(self_, SIGTERM);
    }
  }

  void SayAllEnded(int left) {
    end_asked_ = false;
    script_ = -1;
    SendMessage(socket_, Kind::kAllEnded, left);
  }

  [[noreturn]] void EndWithAgent() {
    const base::Instant end = clock_.Now() + kKillPatience;
    while (Reap() && clock_.Now() < end) {
      SignalDescendants(self_, SIGKILL);
      clock_.SleepFor(std::chrono::milliseconds(5));
    }
    _exit(0);
  }

  const int socket_, output_;
  const pid_t self_;
  base::Clock& clock_ = base::Clock::Real();
  int signals_ = -1;
  pid_t script_ = -1;  // -1: none, or it has ended
  bool end_asked_ = false;
  bool orphans_asked_ = false;
  base::Instant kill_at_{};
};

}  // namespace

void RunKeeper(int socket, int output) { Keeper(socket, output).Run(); }

}  // namespace hetero::agent
