#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "api/manifest.h"
#include "api/unsupported_fields.h"
#include "base/grpc_lifetime.h"
#include "base/log.h"
#include "base/signals.h"
#include "runtime/local/attachment.h"
#include "runtime/local/ignored_fields.h"
#include "runtime/program/commands.h"
#include "runtime/program/load_manifest.h"
#include "runtime/program/run_job.h"

namespace hetero::commands {
namespace {

constexpr char kSetHelp[] =
    "Change a field, for example training.maxSteps=5, roles.cpu.replicas=3 or "
    "pipeline='[{op: Normalize}]'; the value is YAML; may be repeated";

// The job around a script that somebody else starts.
absl::Status Attach(api::HeteroTrainingJob& job) {
  if (!job.spec.training.script) {
    return absl::InvalidArgumentError(
        "--attach gives the batches to a script, but the job trains spec.training.model; give "
        "spec.training.script in its place");
  }
  const int32_t ranks = job.spec.world_size();
  job = local::ForOneRank(std::move(job));
  if (ranks > 1) {
    const int64_t samples = int64_t{job.spec.training.batch_size_per_worker} *
                            job.spec.training.gradient_accumulation_steps;
    std::cerr << "one rank instead of " << ranks << ": a step has " << samples << " samples, not "
              << samples * ranks << std::endl;
  }
  return absl::OkStatus();
}

int RunLocalCommand(const LocalArguments& arguments) {
  base::SignalStop signals;
  base::KeepGrpcInitialized();
  log::Init("local", log::Level::kWarning);
  std::optional<api::HeteroTrainingJob> job = LoadManifest(arguments.manifest, arguments.overrides);
  if (!job) return kExitUsage;
  const std::vector<std::string> ignored_fields = local::IgnoredFields(*job);
  job = local::WithoutSecrets(*std::move(job));
  if (const absl::Status attached = arguments.attach ? Attach(*job) : absl::OkStatus();
      !attached.ok()) {
    std::cerr << attached.message() << "\n";
    return kExitUsage;
  }
  int exit_code = kExitSucceeded;
  const std::optional<CheckedJob> checked =
      CheckJob(*std::move(job), arguments, signals, &exit_code);
  return checked ? RunJob(*checked, arguments, ignored_fields, signals) : exit_code;
}

int RunValidateCommand(const LocalArguments& arguments) {
  const std::optional<api::HeteroTrainingJob> job =
      LoadManifest(arguments.manifest, arguments.overrides);
  if (!job) return kExitUsage;
  const std::vector<api::FieldError> errors = api::UnsupportedFields(*job);
  if (!errors.empty()) return PrintErrors(arguments.manifest, errors);
  std::cout << arguments.manifest << ": valid\n";
  return kExitSucceeded;
}

}  // namespace

void AddLocal(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("local", "Run a job as processes of this machine");
  auto arguments = std::make_shared<LocalArguments>();
  command->add_option("JOB", arguments->manifest, "Manifest (YAML)")->required();
  command->add_option(
      "--output", arguments->output,
      "Folder for report, logs and results; default: the manifest's output.uri, if it is a folder, "
      "else hetero-output/<job name>");
  command->add_option("--set", arguments->overrides, kSetHelp)->allow_extra_args(false);
  command->add_flag("--input-only", arguments->input_only,
                    "Run the data path into a consumer that discards, to measure it");
  command
      ->add_flag("--attach", arguments->attach,
                 "Start no script, but give one rank's batches to one that somebody else has "
                 "started: prints {\"socket\": PATH} when it may connect, all else to standard "
                 "error, and ends with its standard input")
      ->excludes("--input-only");
  command
      ->add_flag("--ceiling-probe", arguments->ceiling_probe,
                 "First measure how fast training is when its input costs nothing")
      ->excludes("--input-only")
      ->excludes("--attach");
  command->add_flag("--strict-rules", arguments->strict_rules,
                    "Print what rules have found, and end with code 4, where something that they "
                    "found still held when the job succeeded");
  command->add_flag("--page{127.0.0.1:0}", arguments->page,
                    "Serve a live page of the job, --page=HOST:PORT; default: 127.0.0.1 and a free "
                    "port. Prints its address at once");
  command->add_option("--dump-stream", arguments->dump_stream,
                      "Write every consumed batch into this folder as safetensors");
  command->add_option(
      "--trainer", arguments->trainer,
      "hetero-trainer to use; default: the one beside this program, for GPUs the one "
      "in the folder cuda there");
  command->footer(
      "Exit code: 0 succeeded, 1 failed, 2 invalid manifest or usage, 4 succeeded with findings "
      "(--strict-rules), 130 stopped by Ctrl-C.\n"
      "Ctrl-C stops the job and writes the report; a second Ctrl-C kills it.");
  command->callback([arguments, exit_code] { *exit_code = RunLocalCommand(*arguments); });
}

void AddValidate(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("validate", "Check a manifest and print all its errors");
  auto arguments = std::make_shared<LocalArguments>();
  command->add_option("JOB", arguments->manifest, "Manifest (YAML)")->required();
  command->add_option("--set", arguments->overrides, kSetHelp)->allow_extra_args(false);
  command->footer("Exit code: 0 valid, 2 invalid.");
  command->callback([arguments, exit_code] { *exit_code = RunValidateCommand(*arguments); });
}

}  // namespace hetero::commands
