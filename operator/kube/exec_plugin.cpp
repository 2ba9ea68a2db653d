#include "operator/kube/exec_plugin.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/time/time.h"
#include "base/json_access.h"
#include "base/status_macros.h"
#include "operator/kube/child_process.h"
#include "operator/kube/system_authorities.h"

namespace hetero::kube {
namespace {

using base::TextOf;
using nlohmann::json;

constexpr size_t kLongestOutput = size_t{1} << 20;
constexpr size_t kQuotedBytes = 2000;
constexpr base::Duration kExitPoll = std::chrono::milliseconds(5);

std::vector<std::string> Environment(const ExecPlugin& plugin) {
  std::vector<std::string> variables = EnvironmentForPrograms();
  const auto set = [&](const std::string& name, const std::string& value) {
    std::erase_if(variables,
                  [&](const std::string& variable) { return variable.starts_with(name + "="); });
    variables.push_back(name + "=" + value);
  };
  for (const auto& [name, value] : plugin.env) set(name, value);
  json spec = {{"interactive", false}};
  if (!plugin.cluster.is_null()) spec["cluster"] = plugin.cluster;
  set("KUBERNETES_EXEC_INFO",
      json{{"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}, {"spec", spec}}.dump());
  return variables;
}

absl::StatusOr<pid_t> Start(const ExecPlugin& plugin, const Pipe& out, const Pipe& err) {
  const absl::StatusOr<pid_t> pid =
      StartProgram(plugin.command, plugin.args, Environment(plugin),
                   {.output = out.write.get(), .error = err.write.get()});
  if (pid.ok()) return pid;
  return absl::UnauthenticatedError(
      std::string(pid.status().message()) +
      (plugin.install_hint.empty() ? "" : "; " + plugin.install_hint));
}

int MillisecondsUntil(base::Instant deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - base::Clock::Real().Now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

// Both outputs until their ends; false when the deadline came first.
bool ReadAll(std::array<Descriptor*, 2> inputs, std::array<std::string, 2>& texts,
             base::Instant deadline) {
  while (inputs[0]->get() >= 0 || inputs[1]->get() >= 0) {
    std::array<pollfd, 2> polled;
    for (size_t i = 0; i < 2; ++i) polled[i] = {inputs[i]->get(), POLLIN, 0};
    const int ready = poll(polled.data(), polled.size(), MillisecondsUntil(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    for (size_t i = 0; i < 2; ++i) {
      if (polled[i].revents == 0) continue;
      char bytes[4096];
      const ssize_t count = read(inputs[i]->get(), bytes, sizeof bytes);
      if (count <= 0) {
        inputs[i]->Close();
      } else if (texts[i].size() < kLongestOutput) {
        texts[i].append(bytes, static_cast<size_t>(count));
      }
    }
  }
  return true;
}

// Its wait status; ends it, and all of its group, at the deadline.
std::optional<int> AwaitExit(pid_t pid, base::Instant deadline) {
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (base::Clock::Real().Now() >= deadline) {
      EndGroup(pid);
      return std::nullopt;
    }
    base::Clock::Real().SleepFor(kExitPoll);
  }
  return status;
}

std::string Quote(std::string text) {
  if (text.size() > kQuotedBytes) text.erase(0, text.size() - kQuotedBytes);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.empty() ? "" : "; it says: " + text;
}

absl::StatusOr<std::string> OutputOf(const ExecPlugin& plugin) {
  HETERO_ASSIGN_OR_RETURN(Pipe out, MakePipe());
  HETERO_ASSIGN_OR_RETURN(Pipe err, MakePipe());
  const base::Instant deadline = base::Clock::Real().Now() + plugin.deadline;
  HETERO_ASSIGN_OR_RETURN(const pid_t pid, Start(plugin, out, err));
  out.write.Close();
  err.write.Close();
  std::array<std::string, 2> texts;
  const bool complete = ReadAll({&out.read, &err.read}, texts, deadline);
  const std::optional<int> status = AwaitExit(pid, complete ? deadline : base::Instant());
  if (!status.has_value()) {
    return absl::DeadlineExceededError("no credential after " +
                                       std::to_string(base::ToSeconds(plugin.deadline)) + " s" +
                                       Quote(texts[1]));
  }
  if (WIFEXITED(*status) && WEXITSTATUS(*status) == 0) return texts[0];
  return absl::UnauthenticatedError(
      (WIFEXITED(*status) ? "it exited with " + std::to_string(WEXITSTATUS(*status))
                          : "it was ended by signal " + std::to_string(WTERMSIG(*status))) +
      Quote(texts[1]));
}

}  // namespace

absl::StatusOr<ExecCredential> ParseExecCredential(const std::string& text,
                                                   const std::string& api_version) {
  const json output = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (TextOf(output, "kind") != "ExecCredential") {
    return absl::UnauthenticatedError("it printed no ExecCredential object");
  }
  if (TextOf(output, "apiVersion") != api_version) {
    return absl::UnauthenticatedError("it answered in apiVersion \"" +
                                      TextOf(output, "apiVersion") + "\", not " + api_version);
  }
  const json status = output.value("status", json());
  ExecCredential result{{TextOf(status, "token"), TextOf(status, "clientCertificateData"),
                         TextOf(status, "clientKeyData")},
                        std::nullopt};
  if (result.credential.token.empty() && result.credential.certificate_pem.empty()) {
    return absl::UnauthenticatedError("its status holds neither token nor clientCertificateData");
  }
  if (result.credential.certificate_pem.empty() != result.credential.key_pem.empty()) {
    return absl::UnauthenticatedError(
        "its status holds only one of clientCertificateData and clientKeyData");
  }
  if (const std::string expires = TextOf(status, "expirationTimestamp"); !expires.empty()) {
    absl::Time time;
    std::string error;
    if (!absl::ParseTime(absl::RFC3339_full, expires, &time, &error)) {
      return absl::UnauthenticatedError("its expirationTimestamp \"" + expires + "\": " + error);
    }
    result.expires = absl::ToChronoTime(time);
  }
  return result;
}

absl::StatusOr<ExecCredential> RunExecPlugin(const ExecPlugin& plugin) {
  HETERO_ASSIGN_OR_RETURN(const std::string text, OutputOf(plugin));
  return ParseExecCredential(text, plugin.api_version);
}

}  // namespace hetero::kube
