#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/log.h"
#include "runtime/compare/comparison.h"
#include "runtime/compare/read_report.h"
#include "runtime/program/commands.h"
#include "runtime/program/run_baseline.h"
#include "runtime/program/source_options.h"
#include "runtime/program/stoppable_command.h"

namespace hetero::commands {
namespace {

struct CompareArguments {
  std::vector<std::string> runs;
  std::string html;
  bool json = false;
  std::string storage;  // a manifest
  BaselineArguments baseline;
};

// All that cannot be read is told, not only the first.
std::optional<std::vector<compare::RunReport>> ReadAll(const std::vector<std::string>& places,
                                                       const storage::Stores& stores) {
  std::vector<compare::RunReport> runs;
  for (const std::string& place : places) {
    absl::StatusOr<compare::RunReport> run = compare::ReadReport(place, stores);
    if (run.ok()) {
      runs.push_back(*std::move(run));
    } else {
      std::cerr << run.status().message() << "\n";
    }
  }
  if (runs.size() < places.size()) return std::nullopt;
  return runs;
}

int CompareReports(const CompareArguments& arguments, compare::Comparison* comparison) {
  // A store may keep it waiting; there is nothing to leave in order.
  const StoppableCommand stoppable;
  log::Init("compare", log::Level::kWarning);
  const std::optional<std::vector<api::StorageAccess>> storage = LoadStorage(arguments.storage);
  if (!storage) return kExitUsage;
  std::optional<std::vector<compare::RunReport>> runs =
      ReadAll(arguments.runs, storage::Stores(*storage));
  if (!runs) return kExitFailed;
  *comparison = compare::Compare(*std::move(runs));
  return kExitSucceeded;
}

// Before hours of training, not after them; a page that is there stays until there is another.
bool CanWrite(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    std::cerr << "--html: " << file << " is a folder; name a file\n";
    return false;
  }
  const std::string probe = file + ".probe";
  const absl::Status written = base::WriteFileAtomically(probe, "");
  if (!written.ok()) std::cerr << "--html: " << written.message() << "\n";
  std::filesystem::remove(probe, ignored);
  return written.ok();
}

int RunCompare(const CompareArguments& arguments) {
  const bool baseline = !arguments.baseline.manifest.empty();
  const size_t count = arguments.runs.size();
  if (baseline ? count > 0 : count < 2 || count > compare::kMostRuns) {
    std::cerr << "give 2 to " << compare::kMostRuns
              << " runs, or a job to --baseline-without-cpu-workers\n";
    return kExitUsage;
  }
  if (!arguments.html.empty() && !CanWrite(arguments.html)) return kExitFailed;
  compare::Comparison comparison;
  const int exit_code = baseline ? RunBaseline(arguments.baseline, &comparison)
                                 : CompareReports(arguments, &comparison);
  if (exit_code != kExitSucceeded) return exit_code;
  if (!arguments.html.empty()) {
    const absl::Status written =
        base::WriteFileAtomically(arguments.html, compare::ToHtml(comparison));
    if (!written.ok()) {
      std::cerr << "--html: " << written.message() << "\n";
      return kExitFailed;
    }
  }
  std::cout << (arguments.json ? compare::ToJson(comparison) : compare::ToText(comparison));
  std::cout.flush();
  return std::cout ? kExitSucceeded : kExitFailed;
}

void AddBaselineOptions(CLI::App* command, BaselineArguments* arguments) {
  CLI::Option* job = command->add_option(
      "--baseline-without-cpu-workers", arguments->manifest,
      "In place of RUNs: run this job (YAML) on this machine without and with its CPU workers");
  command->add_option("--steps", arguments->steps, "Steps of each run, at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->capture_default_str()
      ->needs(job);
  command->add_option("--pairs", arguments->pairs, "How often both are run, in turn")
      ->check(CLI::Range(1, kMostPairs))
      ->capture_default_str()
      ->needs(job);
  command
      ->add_option("--output", arguments->output,
                   "Empty folder for the runs; default: hetero-output/<job name>-baseline")
      ->needs(job);
  command->add_option("--set", arguments->overrides, "Change a field, as in local")
      ->allow_extra_args(false)
      ->needs(job);
  command->add_option("--trainer", arguments->trainer, "hetero-trainer to use, as in local")
      ->needs(job);
}

}  // namespace

void AddCompare(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "compare", "Say what differs between runs: manifests, speed, waiting, accuracy, dollars");
  auto arguments = std::make_shared<CompareArguments>();
  command->add_option(
      "RUN", arguments->runs,
      "Two to twenty output folders or reports (report.json), of this machine or by "
      "the URI of a store; the first is what the others are compared with");
  command->add_option("--html", arguments->html, "Also write a page into this file");
  command
      ->add_option_function<std::string>(
          "-o", [arguments](const std::string& format) { arguments->json = format == "json"; },
          "What to print: text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text");
  AddStorageOption(command, &arguments->storage);
  AddBaselineOptions(command, &arguments->baseline);
  command->footer(
      "Examples:\n"
      "  hetero-runtime compare out/before out/after --html compare.html\n"
      "  hetero-runtime compare out/run-* -o json\n"
      "  hetero-runtime compare --baseline-without-cpu-workers job.yaml --steps 50 --pairs 3\n"
      "Exit code: 0 compared, 1 a report could not be read or a run failed, 2 invalid manifest or "
      "usage,\n130 stopped by Ctrl-C.");
  command->callback([arguments, exit_code] { *exit_code = RunCompare(*arguments); });
}

}  // namespace hetero::commands
