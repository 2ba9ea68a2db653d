#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "api/manifest.h"
#include "api/unsupported_fields.h"
#include "base/grpc_lifetime.h"
#include "base/log.h"
#include "base/signals.h"
#include "runtime/install/program_path.h"
#include "runtime/install/python_package.h"
#include "runtime/local/attachment.h"
#include "runtime/local/gpus.h"
#include "runtime/local/ignored_fields.h"
#include "runtime/local/launcher.h"
#include "runtime/local/output_lock.h"
#include "runtime/local/preflight.h"
#include "runtime/process/output_store.h"
#include "runtime/program/commands.h"
#include "runtime/program/load_manifest.h"

namespace hetero::commands {
namespace {

struct LocalArguments {
  std::string manifest;
  std::vector<std::string> overrides;
  std::string output;
  std::string trainer;
  std::string dump_stream;
  bool input_only = false;
  bool ceiling_probe = false;
  bool attach = false;
};

constexpr char kSetHelp[] =
    "Change a field, for example training.maxSteps=5, roles.cpu.replicas=3 or "
    "pipeline='[{op: Normalize}]'; the value is YAML; may be repeated";

std::string OutputFolder(const LocalArguments& arguments, const api::HeteroTrainingJob& job) {
  if (!arguments.output.empty()) return arguments.output;
  if (job.spec.output && !process::IsStoreUri(job.spec.output->uri)) {
    return std::string(absl::StripPrefix(job.spec.output->uri, "file://"));
  }
  return "hetero-output/" + job.metadata.name;
}

// Where results go when the run is over, beside the folder of this machine; empty: nowhere.
std::string StoreOf(const LocalArguments& arguments, const api::HeteroTrainingJob& job) {
  const bool in_store = arguments.output.empty() && job.spec.output.has_value() &&
                        process::IsStoreUri(job.spec.output->uri);
  return in_store ? job.spec.output->uri : "";
}

// What a job on a cluster leaves there.
bool CopyResults(const std::string& folder, const std::string& store,
                 const std::vector<api::StorageAccess>& storage, std::ostream& console,
                 const base::SignalStop& signals) {
  if (store.empty()) return true;
  console << "copying results to " << store << std::endl;
  // The first was the job's; a store may keep its copy waiting for minutes.
  const std::stop_callback asked_again(signals.second(), [] { _exit(kExitStopped); });
  const absl::Status copied = process::CopyOutput(
      folder, {"report.json", "report.html", "model.safetensors", "tensorboard"}, store, storage,
      std::chrono::minutes(2), signals.second());
  if (copied.ok()) {
    console << "results are in " << store << ", too" << std::endl;
  } else {
    std::cerr << "spec.output.uri: " << copied.message() << "; what was to be copied is in "
              << folder << std::endl;
  }
  return copied.ok();
}

void PrintHeading(const api::HeteroTrainingJob& job, const std::vector<std::string>& ignored,
                  const std::string& output, std::ostream& console) {
  console << job.metadata.name << ":";
  const char* separator = " ";
  for (const api::Role& role : job.spec.roles) {
    console << separator << role.replicas << " x " << role.name;
    separator = ", ";
  }
  console << "; output in " << output << std::endl;
  if (!ignored.empty()) {
    console << "ignored on one machine: " << absl::StrJoin(ignored, ", ") << std::endl;
  }
}

// Scripts find the package of this program, unless somebody has named another one before it.
std::string PythonPath(const std::string& runtime) {
  const char* own = std::getenv("PYTHONPATH");
  const std::string package = install::PackageOf(runtime);
  if (own == nullptr || *own == '\0') return package;
  return package.empty() ? own : absl::StrCat(own, ":", package);
}

std::string DefaultTrainer(const api::HeteroTrainingJob& job, const std::string& runtime) {
  const std::filesystem::path folder = std::filesystem::path(runtime).parent_path();
  return (local::TrainsOnGpus(job) ? folder / "cuda" : folder) / "hetero-trainer";
}

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
  const std::vector<std::string> gpus = local::GpusOfThisMachine();
  std::vector<api::FieldError> errors = local::CheckLocalJob(*job, arguments.input_only, gpus);
  const bool script = job->spec.training.script && !arguments.input_only;
  const std::string working_directory = local::WorkingDirectory(*job, arguments.manifest);
  if (script && !arguments.attach) {
    for (api::FieldError& e : local::CheckScript(*job->spec.training.script, working_directory)) {
      errors.push_back(std::move(e));
    }
  }
  const std::string runtime = install::ProgramPath();
  if (errors.empty()) {
    errors =
        local::CheckPython(*job, {working_directory, install::PackageOf(runtime)}, signals.first());
    if (signals.first().stop_requested()) return kExitStopped;
  }
  if (!errors.empty()) return PrintErrors(arguments.manifest, errors);
  if (script && arguments.ceiling_probe) {
    std::cerr << "--ceiling-probe measures training without its input, which of a script only the "
                 "script can; leave it out\n";
    return kExitUsage;
  }

  const std::string trainer =
      arguments.trainer.empty() ? DefaultTrainer(*job, runtime) : arguments.trainer;
  if (!arguments.input_only && !script) {
    const absl::Status found = local::CheckProgram(
        trainer, local::TrainsOnGpus(*job)
                     ? "for GPUs build it with scripts/cuda.sh, or name it with --trainer PATH; to "
                       "train on the CPU set gpusPerReplica: 0"
                     : "build it with `make build`, or name it with --trainer PATH");
    if (!found.ok()) {
      std::cerr << "trainer program not found: " << found.message() << "\n";
      return kExitUsage;
    }
  }
  std::error_code ignored;
  const std::string output =
      std::filesystem::absolute(OutputFolder(arguments, *job), ignored).string();
  std::vector<std::string> folders = {output};
  if (!arguments.dump_stream.empty()) folders.push_back(arguments.dump_stream);
  for (const std::string& folder : folders) {
    const absl::Status prepared = local::PrepareOutputFolder(folder);
    if (!prepared.ok()) {
      std::cerr << prepared.message() << "\n";
      return kExitFailed;
    }
  }

  const absl::StatusOr<local::OutputLock> lock = local::OutputLock::Take(output);
  if (!lock.ok()) {
    std::cerr << lock.status().message() << "\n";
    return kExitFailed;
  }
  if (const std::string store = StoreOf(arguments, *job); !store.empty()) {
    // Ctrl-C ends the wait for a store that is silent: nothing has begun.
    const std::stop_callback stopped(signals.first(), [] { _exit(kExitStopped); });
    if (const absl::Status writable = process::CheckOutputStore(store, job->spec.storage);
        !writable.ok()) {
      std::cerr << "spec.output.uri: " << writable.message()
                << "; correct it, or keep the results on this machine with --output FOLDER\n";
      return kExitFailed;
    }
  }
  PrintHeading(*job, ignored_fields, output, arguments.attach ? std::cerr : std::cout);
  const absl::StatusOr<local::Outcome> outcome =
      local::RunLocal({.job = *job,
                       .runtime_program = runtime,
                       .trainer_program = trainer,
                       .output_folder = output,
                       .dump_stream_folder =
                           arguments.dump_stream.empty()
                               ? ""
                               : std::filesystem::absolute(arguments.dump_stream, ignored).string(),
                       .working_directory = working_directory,
                       .python_path = PythonPath(runtime),
                       .usable_gpus = gpus,
                       .input_only = arguments.input_only,
                       .attach = arguments.attach,
                       .ceiling_probe = arguments.ceiling_probe},
                      base::Clock::Real(), signals.first(), signals.second());
  if (!outcome.ok()) {
    std::cerr << outcome.status().message() << "\n";
    return kExitFailed;
  }
  const bool copied = CopyResults(output, StoreOf(arguments, *job), job->spec.storage,
                                  arguments.attach ? std::cerr : std::cout, signals);
  switch (*outcome) {
    case local::Outcome::kSucceeded:
      return copied ? kExitSucceeded : kExitFailed;
    case local::Outcome::kFailed:
      return kExitFailed;
    case local::Outcome::kStopped:
      return kExitStopped;
  }
  return kExitFailed;
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
  command->add_option("--dump-stream", arguments->dump_stream,
                      "Write every consumed batch into this folder as safetensors");
  command->add_option(
      "--trainer", arguments->trainer,
      "hetero-trainer to use; default: the one beside this program, for GPUs the one "
      "in the folder cuda there");
  command->footer(
      "Exit code: 0 succeeded, 1 failed, 2 invalid manifest or usage, 130 stopped by Ctrl-C.\n"
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
