#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "runtime/agent/agent.h"
#include "runtime/process/identity.h"
#include "runtime/process/role_process.h"
#include "runtime/program/commands.h"

namespace hetero::commands {
namespace {

struct AgentArguments {
  agent::RankAgentOptions options;
  std::string output;
  bool attach() const { return !options.attached_socket.empty(); }
};

void PrintErrorLine(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
  std::fflush(stderr);
}

void PrintSocket(const std::string& path) {
  std::string escaped;
  for (const char c : path) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  process::PrintLine("{\"socket\": \"" + escaped + "\"}");
}

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kExitSucceeded;
  return absl::IsCancelled(status) || absl::IsAborted(status) ? kExitStopped : kExitFailed;
}

int RunAgentCommand(const AgentArguments& arguments) {
  agent::RankAgentOptions options = arguments.options;
  // Before the first thread.
  std::vector<std::unique_ptr<agent::ScriptProcess>> scripts;
  if (!arguments.attach()) {
    auto forked = agent::ScriptProcess::ForkKeepers(options.ranks);
    if (!forked.ok()) {
      std::cerr << forked.status().message() << "\n";
      return kExitFailed;
    }
    scripts = *std::move(forked);
  }
  process::RoleProcess role;
  absl::StatusOr<process::Identity> identity = role.SetUpMember();
  if (!identity.ok()) {
    std::cerr << identity.status().message() << "\n";
    return kExitUsage;
  }
  if (!arguments.output.empty()) options.log_folder = arguments.output + "/logs";
  std::optional<agent::OwnSocketFolder> sockets;
  if (options.socket_folder.empty()) {
    absl::StatusOr<agent::OwnSocketFolder> created = agent::OwnSocketFolder::Create();
    if (!created.ok()) {
      std::cerr << created.status().message() << "\n";
      return kExitFailed;
    }
    options.socket_folder = sockets.emplace(*std::move(created)).path();
  }
  options.session.identity = *std::move(identity);
  options.session.print = arguments.attach() ? PrintErrorLine : process::PrintLine;
  if (arguments.attach()) options.on_listening = PrintSocket;
  const absl::Status status = agent::RunAgent(options, scripts, base::Clock::Real(), role.stop());
  const int code = ExitCodeOf(status);
  if (code == kExitFailed) log::Error("the job's script failed", {{"error", status.message()}});
  return code;
}

}  // namespace

void AddAgent(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "agent",
      "Run the script of a job on each rank of a pod (started by the operator or by local)");
  auto arguments = std::make_shared<AgentArguments>();
  agent::RankAgentOptions& options = arguments->options;
  CLI::Option* ranks =
      command->add_option("--ranks", options.ranks, "Ranks of this pod: scripts to start")
          ->check(CLI::Range(1, 1024))
          ->capture_default_str();
  command
      ->add_option("--threads", options.threads,
                   "OMP_NUM_THREADS of each script, where it is unset; 0: this pod's cores over "
                   "its ranks")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--sockets", options.socket_folder,
                      "Folder for the sockets of the scripts' streams, with a short path; default: "
                      "one of its own");
  command->add_option(
      "--output", arguments->output,
      "Write what the script of each rank prints into logs/script-<rank>.log of this "
      "folder, and print that of rank 0 only; default: print all, with the rank in "
      "front");
  command->add_option("--working-directory", options.working_directory,
                      "Where the scripts run; default: spec.training.script.workingDirectory");
  command->add_option("--metrics-listen", options.session.metrics_address,
                      "Serve /metrics, /healthz and /readyz on HOST:PORT; default: do not");
  command->add_option("--dump-stream", options.session.dump_stream_folder,
                      "Write every consumed batch into this folder as safetensors");
  command
      ->add_option(
          "--attach", options.attached_socket,
          "Start no script, but serve one that somebody else starts, on this socket; it is "
          "printed as {\"socket\": PATH} when it may be connected to")
      ->excludes(ranks);
  command->callback([arguments, exit_code] { *exit_code = RunAgentCommand(*arguments); });
}

}  // namespace hetero::commands
