#include "cli/port_forward.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "operator/kube/rest_transport.h"
#include "operator/kube/system_authorities.h"

namespace hetero::cli {
namespace {

constexpr base::Duration kPatience = std::chrono::seconds(10);
constexpr base::Duration kPageTimeout = std::chrono::seconds(5);
constexpr int kLookMilliseconds = 50;
constexpr size_t kMostSaid = 4096;
constexpr size_t kMostAtOnce = 256 << 10;
constexpr char kForwarding[] = "Forwarding from 127.0.0.1:";

// Whatever ends this program closes its end of the shell's input, and the shell ends kubectl then.
constexpr char kLeash[] =
    "\"$@\" </dev/null & exec >/dev/null 2>&1; read -r end; kill -KILL $!; wait";

std::vector<std::string> Arguments(const Options& options, const std::string& name_space,
                                   const std::string& pod, int port) {
  std::vector<std::string> arguments = {"-c",
                                        kLeash,
                                        "kubectl port-forward",
                                        "kubectl",
                                        "port-forward",
                                        "--address=127.0.0.1",
                                        "--namespace",
                                        name_space,
                                        "pod/" + pod,
                                        absl::StrCat(":", port)};
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) arguments.insert(arguments.end(), {flag, value});
  };
  add("--kubeconfig", options.kubeconfig);
  add("--context", options.context);
  add("--as", options.act_as);
  return arguments;
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
  if (pid_ > 0) kube::EndGroup(pid_);
}

bool PortForward::Listen() {
  char bytes[512];
  for (size_t heard = 0; heard < kMostAtOnce;) {
    const ssize_t count = read(output_.get(), bytes, sizeof bytes);
    if (count <= 0) return count < 0 && (errno == EAGAIN || errno == EINTR);
    heard += static_cast<size_t>(count);
    said_.append(bytes, static_cast<size_t>(count));
    // At once: of much that follows only the end is kept.
    if (local_port_ == 0) local_port_ = ForwardedPort(said_);
    if (said_.size() > kMostSaid) said_.erase(0, said_.size() - kMostSaid);
  }
  return true;
}

absl::StatusOr<std::unique_ptr<PortForward>> PortForward::Open(const Options& options,
                                                               const std::string& name_space,
                                                               const std::string& pod, int port,
                                                               base::Clock& clock,
                                                               const std::stop_token& stop) {
  HETERO_ASSIGN_OR_RETURN(kube::Pipe input, kube::MakePipe());
  HETERO_ASSIGN_OR_RETURN(kube::Pipe output, kube::MakePipe());
  if (fcntl(output.read.get(), F_SETFL, O_NONBLOCK) != 0) {
    return absl::InternalError(std::string("no pipe: ") + strerror(errno));
  }
  std::unique_ptr<PortForward> forward(new PortForward);
  forward->leash_ = std::move(input.write);
  forward->output_ = std::move(output.read);
  const int said = output.write.get();
  const absl::StatusOr<pid_t> pid = kube::StartProgram(
      "/bin/sh", Arguments(options, name_space, pod, port), kube::EnvironmentForPrograms(),
      {.input = input.read.get(), .output = said, .error = said});
  if (!pid.ok()) {
    return absl::UnavailableError(absl::StrCat("/bin/sh: ", std::string(pid.status().message())));
  }
  forward->pid_ = *pid;
  output.write.Close();
  const base::Instant deadline = clock.Now() + kPatience;
  while (forward->local_port_ == 0) {
    if (stop.stop_requested()) return absl::CancelledError();
    pollfd polled{forward->output_.get(), POLLIN, 0};
    poll(&polled, 1, kLookMilliseconds);
    const bool lives = forward->Listen();
    if (lives && clock.Now() < deadline) continue;
    if (lives && forward->local_port_ > 0) continue;
    return absl::UnavailableError(absl::StrCat("kubectl port-forward ",
                                               lives ? "does not listen" : "ended",
                                               "; it says: ", LastLine(forward->said_)));
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

// Another program may have its port once kubectl has ended.
absl::StatusOr<std::string> PortForward::Get(const std::string& path, const std::stop_token& stop) {
  absl::StatusOr<std::string> got = absl::UnavailableError("kubectl port-forward ended");
  if (Listen()) got = client_->GetText(path, stop);
  if (got.ok()) return got;
  Listen();
  return absl::UnavailableError(
      absl::StrCat(std::string(got.status().message()), "; kubectl says: ", LastLine(said_)));
}

}  // namespace hetero::cli
