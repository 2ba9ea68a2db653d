#include "runtime/interpreter/interpreter_host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <semaphore>
#include <stop_token>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/thread.h"
#include "runtime/interpreter/interpreters_source.h"

namespace hetero::interpreter {
namespace {

using nlohmann::json;

// Where the new process finds its two descriptors.
constexpr int kControl = 3;
constexpr int kSource = 4;
constexpr int kMostAnswer = 1 << 16;  // bytes
constexpr base::Duration kEndPatience = std::chrono::seconds(2);
constexpr base::Duration kPollPause = std::chrono::milliseconds(5);

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Descriptors in the child's places above those that it gets, so that none takes another's.
base::Socket Above(const base::Socket& socket) {
  return base::Socket(fcntl(socket.fd(), F_DUPFD_CLOEXEC, kSource + 1));
}

absl::StatusOr<base::Socket> SourceFile() {
  base::Socket file(memfd_create("interpreters.py", MFD_CLOEXEC));
  const std::string_view source = kInterpretersSource;
  if (!file.open() ||
      write(file.fd(), source.data(), source.size()) != static_cast<ssize_t>(source.size())) {
    return absl::UnavailableError(absl::StrCat("no memory for a program: ", strerror(errno)));
  }
  return file;
}

// A process group of its own: Ctrl-C is for who started the job, and ends this by its socket.
absl::StatusOr<pid_t> Spawn(const HostOptions& options, int control, int source) {
  std::vector<std::string> arguments = {
      options.program, "-u", absl::StrCat("/proc/self/fd/", kSource), absl::StrCat(kControl)};
  std::vector<std::string> environment = options.environment;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, control, kControl);
  posix_spawn_file_actions_adddup2(&actions, source, kSource);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, options.program.c_str(), &actions, &attributes,
                                 Pointers(arguments).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return pid;
  return absl::NotFoundError(absl::StrCat(
      "cannot run ", options.program, ": ", strerror(error),
      "; Python operators need Python 3.9 or newer with numpy on the CPU workers: on a cluster in "
      "the image of their role, on this machine in PATH"));
}

std::string HowItEnded(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, WNOHANG) != pid) return "closed its socket";
  return WIFSIGNALED(status) ? absl::StrCat("was ended by signal ", WTERMSIG(status))
                             : absl::StrCat("ended with exit code ", WEXITSTATUS(status));
}

json Describe(const std::vector<api::OperatorSpec>& pipeline, const HostOptions& options) {
  json path = json::array(), functions = json::array();
  for (const api::OperatorSpec& spec : pipeline) {
    if (spec.op != api::OperatorKind::kPython) continue;
    if (!spec.path.empty() && std::find(path.begin(), path.end(), spec.path) == path.end()) {
      path.push_back(spec.path);
    }
    functions.push_back({{"module", spec.module},
                         {"function", spec.function},
                         {"shape", spec.outputs->image.shape}});
  }
  for (const std::string& folder : options.folders) {
    if (!folder.empty()) path.push_back(folder);
  }
  return {{"path", path},
          {"functions", functions},
          {"patience", base::ToSeconds(options.longest_call)}};
}

// The entry of the pipeline whose function is the one at `index` among the functions.
size_t EntryOf(const std::vector<api::OperatorSpec>& pipeline, int64_t index) {
  for (size_t i = 0; i < pipeline.size(); ++i) {
    if (pipeline[i].op == api::OperatorKind::kPython && index-- == 0) return i;
  }
  return 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<InterpreterHost>> InterpreterHost::Start(
    const std::vector<api::OperatorSpec>& pipeline, const HostOptions& options, base::Clock& clock,
    const std::function<bool()>& stopping) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::UnavailableError(absl::StrCat("socketpair: ", strerror(errno)));
  }
  base::Socket control(ends[0]);
  base::Socket theirs(ends[1]);
  theirs = Above(theirs);
  HETERO_ASSIGN_OR_RETURN(base::Socket source, SourceFile());
  source = Above(source);
  std::promise<absl::StatusOr<pid_t>> spawned;
  std::future<absl::StatusOr<pid_t>> result = spawned.get_future();
  std::jthread parent([&, spawned = std::move(spawned)](const std::stop_token& stop) mutable {
    base::SetThreadName("python-parent");
    spawned.set_value(Spawn(options, theirs.fd(), source.fd()));
    std::binary_semaphore over(0);
    const std::stop_callback end(stop, [&over] { over.release(); });
    over.acquire();
  });
  HETERO_ASSIGN_OR_RETURN(const pid_t pid, result.get());
  theirs = base::Socket();
  std::unique_ptr<InterpreterHost> host(
      new InterpreterHost(std::move(control), pid, std::move(parent), options.patience));
  HETERO_RETURN_IF_ERROR(host->Prepare(pipeline, options, clock, stopping));
  return host;
}

absl::Status InterpreterHost::Prepare(const std::vector<api::OperatorSpec>& pipeline,
                                      const HostOptions& options, base::Clock& clock,
                                      const std::function<bool()>& stopping) {
  const std::string request = Describe(pipeline, options).dump();
  if (send(control_.fd(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(options.program, " ", HowItEnded(pid_), " before it was asked for anything"));
  }
  const base::Instant deadline = clock.Now() + patience_;
  std::string answer(kMostAnswer, '\0');
  ssize_t size = -1;
  while (size < 0) {
    pollfd wanted{.fd = control_.fd(), .events = POLLIN};
    if (poll(&wanted, 1, 200) > 0) {
      size = recv(control_.fd(), answer.data(), answer.size(), 0);
      if (size < 0 && errno != EINTR) size = 0;
    } else if (stopping()) {
      return absl::CancelledError("stopped");
    } else if (clock.Now() >= deadline) {
      return absl::FailedPreconditionError(
          absl::StrCat("importing the Python operators takes longer than ",
                       base::ToSeconds(patience_), " s; import less in their modules"));
    }
  }
  answer.resize(static_cast<size_t>(size));
  const json said = json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (!said.is_object()) {
    clock.SleepFor(kPollPause * 4);  // its end may be told a moment after that of its socket
    return absl::FailedPreconditionError(absl::StrCat(
        options.program, " ", HowItEnded(pid_),
        " while it imported the Python operators; what it printed is above, or in the worker's "
        "log. It needs Python 3.9 or newer with numpy"));
  }
  if (said.contains("error")) {
    const size_t entry = EntryOf(pipeline, said.value("index", int64_t{0}));
    return absl::InvalidArgumentError(absl::StrCat("spec.pipeline[", entry, "] (Python) ",
                                                   said.value("error", std::string("failed"))));
  }
  environment_ = said.value("environment", std::map<std::string, std::string>());
  return absl::OkStatus();
}

InterpreterHost::~InterpreterHost() {
  control_ = base::Socket();  // which ends it
  base::Clock& clock = base::Clock::Real();
  const base::Instant deadline = clock.Now() + kEndPatience;
  while (waitpid(pid_, nullptr, WNOHANG) == 0) {
    if (clock.Now() >= deadline) {
      kill(-pid_, SIGKILL);  // with all that functions have started
      waitpid(pid_, nullptr, 0);
      return;
    }
    clock.SleepFor(kPollPause);
  }
}

}  // namespace hetero::interpreter
