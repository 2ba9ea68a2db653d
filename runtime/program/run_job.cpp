#include "runtime/program/run_job.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <stop_token>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "api/manifest.h"
#include "runtime/install/program_path.h"
#include "runtime/install/python_package.h"
#include "runtime/local/gpus.h"
#include "runtime/local/ignored_fields.h"
#include "runtime/local/launcher.h"
#include "runtime/local/output_folder.h"
#include "runtime/local/output_lock.h"
#include "runtime/local/preflight.h"
#include "runtime/local/strict_rules.h"
#include "runtime/process/output_store.h"
#include "runtime/program/commands.h"
#include "runtime/program/load_manifest.h"

namespace hetero::commands {
namespace {

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

// Of a job that succeeded.
int CheckRules(const std::string& output) {
  const absl::StatusOr<std::string> held = local::HeldFindingsIn(output);
  if (!held.ok()) {
    std::cerr << "--strict-rules: " << held.status().message() << "\n";
    return kExitFailed;
  }
  std::cerr << *held;
  return held->empty() ? kExitSucceeded : kExitFindings;
}

std::string DefaultTrainer(const api::HeteroTrainingJob& job, const std::string& runtime) {
  const std::filesystem::path folder = std::filesystem::path(runtime).parent_path();
  return (local::TrainsOnGpus(job) ? folder / "cuda" : folder) / "hetero-trainer";
}

}  // namespace

std::optional<CheckedJob> CheckJob(api::HeteroTrainingJob job, const LocalArguments& arguments,
                                   const base::SignalStop& signals, int* exit_code) {
  job = local::WithoutSecrets(std::move(job));
  *exit_code = kExitUsage;
  std::vector<std::string> gpus = local::GpusOfThisMachine();
  std::vector<api::FieldError> errors = local::CheckLocalJob(job, arguments.input_only, gpus);
  const bool script = job.spec.training.script && !arguments.input_only;
  std::string working_directory = local::WorkingDirectory(job, arguments.manifest);
  if (script && !arguments.attach) {
    for (api::FieldError& e : local::CheckScript(*job.spec.training.script, working_directory)) {
      errors.push_back(std::move(e));
    }
  }
  std::string runtime = install::ProgramPath();
  if (errors.empty()) {
    errors =
        local::CheckPython(job, {working_directory, install::PackageOf(runtime)}, signals.first());
    if (signals.first().stop_requested()) {
      *exit_code = kExitStopped;
      return std::nullopt;
    }
  }
  if (!errors.empty()) {
    PrintErrors(arguments.manifest, errors);
    return std::nullopt;
  }
  if (script && arguments.ceiling_probe) {
    std::cerr << "--ceiling-probe measures training without its input, which of a script only the "
                 "script can; leave it out\n";
    return std::nullopt;
  }

  std::string trainer =
      arguments.trainer.empty() ? DefaultTrainer(job, runtime) : arguments.trainer;
  if (!arguments.input_only && !script) {
    const absl::Status found = local::CheckProgram(
        trainer, local::TrainsOnGpus(job)
                     ? "for GPUs build it with scripts/cuda.sh, or name it with --trainer PATH; to "
                       "train on the CPU set gpusPerReplica: 0"
                     : "build it with `make build`, or name it with --trainer PATH");
    if (!found.ok()) {
      std::cerr << "trainer program not found: " << found.message() << "\n";
      return std::nullopt;
    }
  }
  *exit_code = kExitSucceeded;
  return CheckedJob{.job = std::move(job),
                    .working_directory = std::move(working_directory),
                    .runtime = std::move(runtime),
                    .trainer = std::move(trainer),
                    .gpus = std::move(gpus)};
}

int RunJob(const CheckedJob& checked, const LocalArguments& arguments,
           const std::vector<std::string>& ignored_fields, const base::SignalStop& signals) {
  const api::HeteroTrainingJob& job = checked.job;
  const bool on_stderr = arguments.attach || arguments.console_on_stderr;
  std::ostream& console = on_stderr ? std::cerr : std::cout;
  std::error_code ignored;
  const std::string output =
      std::filesystem::absolute(OutputFolder(arguments, job), ignored).string();
  if (const absl::Status free = local::CheckOutputFolder(output, arguments.manifest, job);
      !free.ok()) {
    std::cerr << free.message() << "\n";
    return kExitFailed;
  }
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
  if (const std::string store = StoreOf(arguments, job); !store.empty()) {
    // Ctrl-C ends the wait for a store that is silent: nothing has begun.
    const std::stop_callback stopped(signals.first(), [] { _exit(kExitStopped); });
    if (const absl::Status writable = process::CheckOutputStore(store, job.spec.storage);
        !writable.ok()) {
      std::cerr << "spec.output.uri: " << writable.message()
                << "; correct it, or keep the results on this machine with --output FOLDER\n";
      return kExitFailed;
    }
  }
  PrintHeading(job, ignored_fields, output, console);
  const absl::StatusOr<local::Outcome> outcome =
      local::RunLocal({.job = job,
                       .runtime_program = checked.runtime,
                       .trainer_program = checked.trainer,
                       .output_folder = output,
                       .dump_stream_folder =
                           arguments.dump_stream.empty()
                               ? ""
                               : std::filesystem::absolute(arguments.dump_stream, ignored).string(),
                       .working_directory = checked.working_directory,
                       .python_path = PythonPath(checked.runtime),
                       .usable_gpus = checked.gpus,
                       .input_only = arguments.input_only,
                       .attach = arguments.attach,
                       .ceiling_probe = arguments.ceiling_probe,
                       .console_on_stderr = on_stderr,
                       .page_address = arguments.page},
                      base::Clock::Real(), signals.first(), signals.second());
  if (!outcome.ok()) {
    std::cerr << outcome.status().message() << "\n";
    return kExitFailed;
  }
  const bool copied =
      CopyResults(output, StoreOf(arguments, job), job.spec.storage, console, signals);
  switch (*outcome) {
    case local::Outcome::kSucceeded:
      if (!copied) return kExitFailed;
      return arguments.strict_rules ? CheckRules(output) : kExitSucceeded;
    case local::Outcome::kFailed:
      return kExitFailed;
    case local::Outcome::kStopped:
      return kExitStopped;
  }
  return kExitFailed;
}

}  // namespace hetero::commands
