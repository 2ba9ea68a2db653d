#include "cli/port_forward.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "operator/kube/rest_transport.h"

extern char** environ;

namespace hetero::cli {
namespace {

constexpr base::Duration kPatience = std::chrono::seconds(10);
constexpr base::Duration kPageTimeout = std::chrono::seconds(5);
constexpr int kLookMilliseconds = 50;
constexpr size_t kMostSaid = 4096;
constexpr char kForwarding[] = "Forwarding from 127.0.0.1:";

std::vector<std::string> Arguments(const Options& options, const std::string& name_space,
                                   const std::string& pod, int port) {
  std::vector<std::string> arguments = {
      "kubectl",  "port-forward", "--address=127.0.0.1",  "--namespace",
      name_space, "pod/" + pod,   absl::StrCat(":", port)};
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) arguments.insert(arguments.end(), {flag, value});
  };
  add("--kubeconfig", options.kubeconfig);
  add("--context", options.context);
  add("--as", options.act_as);
  return arguments;
}

// Its own process group: Ctrl-C is for the screen, which then ends this.
int Spawn(std::vector<std::string> arguments, int output, pid_t& pid) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t no_signals;
  sigemptyset(&no_signals);
  posix_spawnattr_setsigmask(&attributes, &no_signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  const int error = posix_spawnp(&pid, pointers[0], &files, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return error;
}

std::string LastLine(std::string_view said) {
  while (said.ends_with('\n')) said.remove_suffix(1);
  return std::string(said.substr(said.rfind('\n') + 1));
}

}  // namespace

int ForwardedPort(std::string_view said) {
  const size_t begin = said.find(kForwarding);
  if (begin == std::string_view::npos) return 0;
  said.remove_prefix(begin + sizeof kForwarding - 1);
  const size_t end = said.find(" -> ");
  int port = 0;
  if (end == std::string_view::npos || !absl::SimpleAtoi(std::string(said.substr(0, end)), &port))
    return 0;
  return port > 0 && port < 65536 ? port : 0;
}

PortForward::~PortForward() {
  if (pid_ > 0) {
    kill(-pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (output_ >= 0) close(output_);
}

absl::StatusOr<std::unique_ptr<PortForward>> PortForward::Open(const Options& options,
                                                               const std::string& name_space,
                                                               const std::string& pod, int port,
                                                               base::Clock& clock,
                                                               const std::stop_token& stop) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::ResourceExhaustedError(std::string("no pipe: ") + strerror(errno));
  }
  std::unique_ptr<PortForward> forward(new PortForward);
  forward->output_ = ends[0];
  const int error = Spawn(Arguments(options, name_space, pod, port), ends[1], forward->pid_);
  close(ends[1]);
  if (error != 0) {
    forward->pid_ = -1;
    return absl::NotFoundError(absl::StrCat("kubectl cannot be started: ", strerror(error)));
  }
  const base::Instant deadline = clock.Now() + kPatience;
  std::string said;
  while (forward->local_port_ == 0) {
    if (stop.stop_requested()) return absl::CancelledError();
    if (clock.Now() >= deadline || said.size() > kMostSaid) {
      return absl::UnavailableError(
          absl::StrCat("kubectl port-forward does not listen; it says: ", LastLine(said)));
    }
    pollfd polled{ends[0], POLLIN, 0};
    if (poll(&polled, 1, kLookMilliseconds) <= 0) continue;
    char bytes[512];
    const ssize_t count = read(ends[0], bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return absl::UnavailableError(
          absl::StrCat("kubectl port-forward ended; it says: ", LastLine(said)));
    }
    said.append(bytes, static_cast<size_t>(count));
    forward->local_port_ = ForwardedPort(said);
  }
  if (const absl::Status connected = forward->Connect(clock); !connected.ok()) return connected;
  return forward;
}

absl::Status PortForward::Connect(base::Clock& clock) {
  kube::ClusterAccess access;
  access.server = absl::StrCat("http://127.0.0.1:", local_port_);
  auto transport = kube::MakeRestTransport(std::move(access));
  if (!transport.ok()) return transport.status();
  transport_ = *std::move(transport);
  kube::Client::Options options;
  options.user_agent = "kubectl-hetero";
  options.timeout = kPageTimeout;
  client_ = std::make_unique<kube::Client>(*transport_, clock, registry_, options);
  return absl::OkStatus();
}

absl::StatusOr<std::string> PortForward::Get(const std::string& path, const std::stop_token& stop) {
  return client_->GetText(path, stop);
}

}  // namespace hetero::cli
