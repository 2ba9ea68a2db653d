#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/ports.h"
#include "base/clock.h"
#include "base/log.h"
#include "runtime/process/consumer.h"
#include "runtime/process/cpu_worker.h"
#include "runtime/process/head.h"
#include "runtime/process/identity.h"
#include "runtime/process/output_store.h"
#include "runtime/process/role_process.h"
#include "runtime/program/commands.h"
#include "runtime/program/load_manifest.h"

namespace hetero::commands {
namespace {

constexpr char kMetricsHelp[] =
    "Serve /metrics, /healthz and /readyz on HOST:PORT; default: do not";

struct HeadArguments {
  std::string job_file;
  std::string listen = absl::StrCat("0.0.0.0:", api::kHeadPort);
  std::string status_listen;
  std::string page_listen;
  std::string output;
  std::string metrics;
  int64_t created_unix_ns = 0;
  std::string history_file;
  bool input_only = false;
  bool leave_on_stop = false;
};

int ExitCodeOf(v1::JobStatus::State state) {
  if (state == v1::JobStatus::SUCCEEDED) return kExitSucceeded;
  return state == v1::JobStatus::STOPPED ? kExitStopped : kExitFailed;
}

int RunHeadCommand(const HeadArguments& arguments) {
  process::RoleProcess role;
  role.SetUp("head");
  const std::optional<api::HeteroTrainingJob> job = LoadJobDocument(arguments.job_file);
  if (!job) return kExitUsage;
  base::Clock& clock = base::Clock::Real();
  const base::WallTime created =
      arguments.created_unix_ns > 0
          ? base::WallTime(std::chrono::nanoseconds(arguments.created_unix_ns))
          : clock.WallNow();
  absl::StatusOr<process::HeadTls> tls = process::HeadTlsFromEnvironment();
  if (!tls.ok()) {
    std::cerr << "head: " << tls.status().message() << "\n";
    return kExitFailed;
  }
  absl::StatusOr<process::HeadIdentity> identity = process::HeadIdentityFromEnvironment();
  if (!identity.ok()) {
    std::cerr << "head: " << identity.status().message() << "\n";
    return kExitFailed;
  }
  process::HeadOptions options;
  options.server.job_uid = std::move(identity->job_uid);
  options.server.incarnation = identity->incarnation;
  options.metrics_address = arguments.metrics;
  options.page_address = arguments.page_listen;
  options.leave_on_stop = arguments.leave_on_stop;
  options.server.job = *job;
  options.server.listen_address = arguments.listen;
  options.server.status_address = arguments.status_listen;
  options.server.tls = std::move(tls->members);
  options.server.status_tls = std::move(tls->status);
  options.server.input_only = arguments.input_only;
  if (process::IsStoreUri(arguments.output)) {
    auto place = process::ReportInStore(arguments.output, job->spec.storage);
    if (!place.ok()) {
      std::cerr << "head: --output: " << place.status().message() << "\n";
      return kExitUsage;
    }
    options.server.report_place = *std::move(place);
  } else {
    options.server.output_folder = arguments.output;
  }
  options.server.created = created;
  options.server.history = process::HeadHistoryFromEnvironment(created);
  options.server.history.file = arguments.history_file;
  const absl::StatusOr<v1::JobStatus> status =
      process::RunHead(std::move(options), clock, role.stop());
  if (!status.ok()) {
    std::cerr << "head: " << status.status().message() << "\n";
    return kExitFailed;
  }
  const bool ended =
      status->state() != v1::JobStatus::WAITING && status->state() != v1::JobStatus::RUNNING;
  if (!ended) {
    log::Info("left: the next head takes over");
    return kExitTerminated;
  }
  if (status->has_first_failure()) {
    const v1::Failure& failure = status->first_failure();
    std::cout << (status->state() == v1::JobStatus::FAILED ? "failed: " : "warning: ")
              << failure.member() << (failure.member().empty() ? "" : ": ") << failure.message()
              << "\n";
  }
  std::cout << "\n" << status->summary() << std::endl;
  return ExitCodeOf(status->state());
}

int RunCpuWorkerCommand(const process::CpuWorkerOptions& arguments) {
  process::RoleProcess role;
  process::CpuWorkerOptions options = arguments;
  absl::StatusOr<process::Identity> identity = role.SetUpMember();
  if (!identity.ok()) {
    std::cerr << identity.status().message() << "\n";
    return kExitUsage;
  }
  options.identity = *std::move(identity);
  const absl::Status status = process::RunCpuWorker(options, base::Clock::Real(), role.stop());
  if (status.ok()) return kExitSucceeded;
  log::Error("CPU worker failed", {{"error", status.message()}});
  return kExitFailed;
}

int RunConsumerCommand(process::RankSession::Options options) {
  process::RoleProcess role;
  absl::StatusOr<process::Identity> identity = role.SetUpMember();
  if (!identity.ok()) {
    std::cerr << identity.status().message() << "\n";
    return kExitUsage;
  }
  options.identity = *std::move(identity);
  options.print = process::PrintLine;
  const absl::Status status =
      process::RunConsumer(std::move(options), base::Clock::Real(), role.stop());
  if (status.ok()) return kExitSucceeded;
  log::Error("consumer failed", {{"error", status.message()}});
  return absl::IsCancelled(status) ? kExitStopped : kExitFailed;
}

}  // namespace

void AddHead(CLI::App& app, int* exit_code) {
  CLI::App* command =
      app.add_subcommand("head", "Run a job's head (started by the operator or by local)");
  auto arguments = std::make_shared<HeadArguments>();
  command->add_option("--job", arguments->job_file, "Manifest (YAML or JSON)")->required();
  command->add_option("--listen", arguments->listen, "Address to serve on, host:port or unix:PATH")
      ->capture_default_str();
  command->add_option(
      "--status-listen", arguments->status_listen,
      "Serve the status of the job on HOST:PORT; default: on the address of --listen");
  command->add_option("--page-listen", arguments->page_listen,
                      "Serve on HOST:PORT /live, the live page of the job, and /, the report so "
                      "far; default: do not");
  command->add_option("--output", arguments->output,
                      "Folder for report.json and report.html, or s3://bucket/prefix");
  command->add_option("--created-unix-ns", arguments->created_unix_ns,
                      "When the job was created; all times count from here; default: now");
  command->add_option("--history", arguments->history_file,
                      "Keep what the next head has to know in FILE, and begin with what is there");
  command->add_option("--metrics-listen", arguments->metrics, kMetricsHelp);
  command->add_flag("--leave-on-stop", arguments->leave_on_stop,
                    "SIGTERM and SIGINT end this process and leave the job to the next head");
  command->add_flag("--input-only", arguments->input_only, "The job has consumers, not trainers");
  command->callback([arguments, exit_code] { *exit_code = RunHeadCommand(*arguments); });
}

void AddCpuWorker(CLI::App& app, int* exit_code) {
  CLI::App* command =
      app.add_subcommand("cpu-worker", "Run a CPU worker (started by the operator or by local)");
  auto arguments = std::make_shared<process::CpuWorkerOptions>();
  arguments->listen_address = absl::StrCat("0.0.0.0:", api::kFeedPort);
  command
      ->add_option("--listen", arguments->listen_address,
                   "Address to serve batches on, host:port or unix:PATH")
      ->capture_default_str();
  command->add_option("--metrics-listen", arguments->metrics_address, kMetricsHelp);
  command->add_option("--threads", arguments->threads, "Worker threads; 0: one per usable core")
      ->capture_default_str();
  command->callback([arguments, exit_code] { *exit_code = RunCpuWorkerCommand(*arguments); });
}

void AddConsumer(CLI::App& app, int* exit_code) {
  CLI::App* command =
      app.add_subcommand("consumer", "Run a rank that discards its batches (local --input-only)");
  auto options = std::make_shared<process::RankSession::Options>();
  command->add_option("--dump-stream", options->dump_stream_folder,
                      "Write every consumed batch into this folder as safetensors");
  command->callback([options, exit_code] { *exit_code = RunConsumerCommand(*options); });
}

}  // namespace hetero::commands
