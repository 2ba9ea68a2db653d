#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/atomic_file.h"
#include "base/log.h"
#include "runtime/install/program_path.h"
#include "runtime/install/python_package.h"
#include "runtime/local/preflight.h"
#include "runtime/local/preview.h"
#include "runtime/program/commands.h"
#include "runtime/program/load_manifest.h"
#include "runtime/program/one_of.h"
#include "runtime/source/make_dataset.h"

namespace hetero::commands {
namespace {

struct PreviewArguments {
  std::string manifest;
  std::vector<std::string> overrides;
  std::string output;
  int64_t samples = 16;
};

struct DatasetArguments {
  source::MakeDatasetOptions options;
  int32_t size = 32;
};

int RunPreview(const PreviewArguments& arguments) {
  log::Init("preview", log::Level::kWarning);
  const std::optional<api::HeteroTrainingJob> job =
      LoadManifest(arguments.manifest, arguments.overrides);
  if (!job) return kExitUsage;
  const std::string file =
      arguments.output.empty() ? job->metadata.name + "-preview.png" : arguments.output;
  const absl::Status status =
      local::WritePreview(*job, arguments.samples,
                          {local::WorkingDirectory(*job, arguments.manifest),
                           install::PackageOf(install::ProgramPath())},
                          file);
  if (!status.ok()) {
    std::cerr << status.message() << "\n";
    return kExitFailed;
  }
  std::cout << file << "\n";
  return kExitSucceeded;
}

int RunMakeDataset(const DatasetArguments& arguments) {
  log::Init("make-dataset", log::Level::kWarning);
  source::MakeDatasetOptions options = arguments.options;
  options.size = {arguments.size, arguments.size};
  const absl::Status status = source::MakeDataset(options);
  if (!status.ok()) {
    std::cerr << status.message() << "\n";
    return absl::IsInvalidArgument(status) ? kExitUsage : kExitFailed;
  }
  std::cout << options.samples << " training and " << options.validation_samples
            << " validation pictures of " << options.classes << " classes in " << options.folder
            << "\n";
  return kExitSucceeded;
}

struct ReportArguments {
  std::string folder;
  bool html = false;
};

// In containers without a shell this is how `kubectl hetero report` reads a volume.
int RunReport(const ReportArguments& arguments) {
  const std::string file =
      absl::StrCat(arguments.folder, arguments.html ? "/report.html" : "/report.json");
  const absl::StatusOr<std::string> text = base::ReadFile(file);
  if (!text.ok()) {
    std::cerr << "there is no report to read: " << text.status().message() << "\n";
    return kExitFailed;
  }
  std::cout << *text << std::flush;
  return std::cout ? kExitSucceeded : kExitFailed;
}

}  // namespace

void AddReport(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("report", "Print the report that a job has written");
  auto arguments = std::make_shared<ReportArguments>();
  command->add_option("FOLDER", arguments->folder, "The job's output folder")->required();
  command->add_flag("--html", arguments->html, "report.html in place of report.json");
  command->callback([arguments, exit_code] { *exit_code = RunReport(*arguments); });
}

void AddPreview(CLI::App& app, int* exit_code) {
  CLI::App* command =
      app.add_subcommand("preview", "Write a contact sheet (PNG) of what a job's pipeline yields");
  auto arguments = std::make_shared<PreviewArguments>();
  command->add_option("JOB", arguments->manifest, "Manifest (YAML)")->required();
  command->add_option("--samples", arguments->samples, "Pictures on the sheet")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_option("--output", arguments->output, "File; default: <job name>-preview.png");
  command->add_option("--set", arguments->overrides, "Change a field, as in local")
      ->allow_extra_args(false);
  command->callback([arguments, exit_code] { *exit_code = RunPreview(*arguments); });
}

void AddMakeDataset(CLI::App& app, int* exit_code) {
  CLI::App* command =
      app.add_subcommand("make-dataset", "Draw a small labelled dataset that a network can learn");
  auto arguments = std::make_shared<DatasetArguments>();
  source::MakeDatasetOptions& options = arguments->options;
  command->add_option("FOLDER", options.folder, "Folder to create")->required();
  command->add_option("--format", options.format, "ImageFolder (JPEG files) or IDX (gzipped)")
      ->transform(OneOf<api::DatasetFormat>(
          {{"ImageFolder", api::DatasetFormat::kImageFolder}, {"IDX", api::DatasetFormat::kIdx}}))
      ->default_str("ImageFolder");
  command->add_option("--classes", options.classes, "Classes")->capture_default_str();
  command->add_option("--samples", options.samples, "Training pictures")->capture_default_str();
  command->add_option("--validation-samples", options.validation_samples, "Validation pictures")
      ->capture_default_str();
  command->add_option("--size", arguments->size, "Height and width in pixels")
      ->capture_default_str();
  command->add_option("--seed", options.seed, "The same seed draws the same pictures")
      ->capture_default_str();
  command->callback([arguments, exit_code] { *exit_code = RunMakeDataset(*arguments); });
}

}  // namespace hetero::commands
