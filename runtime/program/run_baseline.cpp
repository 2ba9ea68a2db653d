#include "runtime/program/run_baseline.h"

#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/grpc_lifetime.h"
#include "base/log.h"
#include "base/process_usage.h"
#include "base/signals.h"
#include "runtime/compare/baseline_jobs.h"
#include "runtime/compare/read_report.h"
#include "runtime/local/ignored_fields.h"
#include "runtime/local/output_lock.h"
#include "runtime/program/commands.h"
#include "runtime/program/load_manifest.h"
#include "runtime/program/run_job.h"

namespace hetero::commands {
namespace {

struct Side {
  const char* name;    // of its folders
  const char* spoken;  // to a person
  CheckedJob checked;
  std::vector<std::string> ignored_fields;
  std::vector<compare::RunReport> reports;
};

bool IsEmpty(const std::string& folder) {
  std::error_code error;
  return !std::filesystem::exists(folder, error) || std::filesystem::is_empty(folder, error);
}

absl::StatusOr<local::OutputLock> TakeFolder(const std::string& folder) {
  if (!IsEmpty(folder)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "output folder ", folder, " is not empty; remove it, or choose another with --output"));
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return absl::FailedPreconditionError(absl::StrCat(
        "output folder ", folder, ": ", error.message(), "; choose another with --output"));
  }
  return local::OutputLock::Take(folder);
}

// One run of one side; its report is among the side's then.
int RunSide(Side& side, const LocalArguments& arguments, const base::SignalStop& signals) {
  const int exit_code = RunJob(side.checked, arguments, side.ignored_fields, signals);
  if (exit_code != kExitSucceeded) {
    std::cerr << "the run of " << side.spoken << " "
              << (exit_code == kExitStopped ? "was stopped" : "failed")
              << ", and nothing is compared; what it left is in " << arguments.output << "\n";
    return exit_code;
  }
  absl::StatusOr<compare::RunReport> report = compare::ReadReport(arguments.output, {});
  if (!report.ok()) {
    std::cerr << report.status().message() << "\n";
    return kExitFailed;
  }
  side.reports.push_back(*std::move(report));
  return kExitSucceeded;
}

// On one machine the table says little of what CPU machines bring.
std::vector<std::string> SharedCoresNotes() {
  return {
      absl::StrCat("both ran on this machine, where trainers and CPU workers share ",
                   base::UsableCores(), " cores"),
      "for CPU workers on machines of their own, run both jobs there and compare their reports"};
}

compare::Comparison ComparisonOf(const Side& alone, const Side& together) {
  std::vector<compare::RunReport> runs;
  for (size_t i = 0; i < alone.reports.size(); ++i) {
    runs.push_back(alone.reports[i]);
    runs.push_back(together.reports[i]);
  }
  compare::Comparison comparison = compare::Compare(std::move(runs));
  comparison.prices = compare::PriceTableOf(alone.reports, together.reports);
  for (std::string& note : SharedCoresNotes()) {
    comparison.prices->notes.push_back(std::move(note));
  }
  if (std::string verdict = compare::PairsVerdict(*comparison.prices); !verdict.empty()) {
    comparison.ranking = {.fastest = {}, .cheapest = {}, .sentence = std::move(verdict)};
  }
  return comparison;
}

}  // namespace

int RunBaseline(const BaselineArguments& arguments, compare::Comparison* comparison) {
  const base::SignalStop signals;
  base::KeepGrpcInitialized();
  log::Init("local", log::Level::kWarning);
  const std::optional<api::HeteroTrainingJob> job =
      LoadManifest(arguments.manifest, arguments.overrides);
  if (!job) return kExitUsage;
  absl::StatusOr<compare::BaselineJobs> jobs = compare::BaselineJobsOf(*job, arguments.steps);
  if (!jobs.ok()) {
    std::cerr << arguments.manifest << ": " << jobs.status().message() << "\n";
    return kExitUsage;
  }
  LocalArguments local{
      .manifest = arguments.manifest, .trainer = arguments.trainer, .console_on_stderr = true};
  int exit_code = kExitSucceeded;
  std::optional<CheckedJob> checked_together = CheckJob(jobs->together, local, signals, &exit_code);
  if (!checked_together) return exit_code;
  std::optional<CheckedJob> checked_alone = CheckJob(jobs->alone, local, signals, &exit_code);
  if (!checked_alone) return exit_code;
  Side alone{"alone",
             "the trainers alone",
             *std::move(checked_alone),
             local::IgnoredFields(jobs->alone),
             {}};
  Side together{"with-cpu-workers",
                "the job with its CPU workers",
                *std::move(checked_together),
                local::IgnoredFields(jobs->together),
                {}};

  const std::string folder = arguments.output.empty()
                                 ? absl::StrCat("hetero-output/", job->metadata.name, "-baseline")
                                 : arguments.output;
  const absl::StatusOr<local::OutputLock> lock = TakeFolder(folder);
  if (!lock.ok()) {
    std::cerr << lock.status().message() << "\n";
    return kExitFailed;
  }
  for (int pair = 1; pair <= arguments.pairs; ++pair) {
    // Whoever was second before comes first: what changes on the machine meanwhile favours nobody.
    std::vector<Side*> order = {&alone, &together};
    if (pair % 2 == 0) std::swap(order[0], order[1]);
    for (Side* side : order) {
      local.output = absl::StrCat(folder, "/", side->name, "-", pair);
      std::cerr << "\npair " << pair << " of " << arguments.pairs << ", " << side->spoken << "\n";
      exit_code = RunSide(*side, local, signals);
      if (exit_code != kExitSucceeded) return exit_code;
    }
  }
  std::cerr << "\n";
  *comparison = ComparisonOf(alone, together);
  return kExitSucceeded;
}

}  // namespace hetero::commands
