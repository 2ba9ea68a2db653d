#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "runtime/local/inspection.h"
#include "runtime/program/commands.h"
#include "runtime/program/source_options.h"

namespace hetero::commands {
namespace {

struct InspectArguments {
  local::InspectOptions options;
  std::string storage;  // a manifest
  bool json = false;
};

int RunInspect(const InspectArguments& arguments) {
  log::Init("inspect", log::Level::kWarning);
  local::InspectOptions options = arguments.options;
  options.source.uri = UriOf(options.source.uri);
  if (const absl::Status status = CheckLabelOptions(options.label); !status.ok()) {
    std::cerr << status.message() << "\n";
    return kExitUsage;
  }
  std::optional<std::vector<api::StorageAccess>> storage = LoadStorage(arguments.storage);
  if (!storage) return kExitUsage;
  options.storage = *std::move(storage);
  const absl::StatusOr<local::Inspection> inspection = local::InspectDataset(options);
  if (!inspection.ok()) {
    std::cerr << inspection.status().message() << "\n";
    return kExitFailed;
  }
  std::cout << (arguments.json ? local::InspectionJson(*inspection)
                               : local::InspectionText(*inspection));
  if (!options.sheet.empty() && !arguments.json) {
    std::cout << "\nPictures are in " << options.sheet << "\n";
  }
  std::cout.flush();
  return std::cout ? kExitSucceeded : kExitFailed;
}

}  // namespace

void AddInspect(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "inspect", "Say what a dataset holds: format, samples, classes, sizes; and draw some of it");
  auto arguments = std::make_shared<InspectArguments>();
  api::DatasetSource& source = arguments->options.source;
  command->add_option("URI", source.uri, "dataset.uri of a manifest, or a folder")->required();
  AddSourceOptions(command, "--format", &source, &arguments->options.label);
  AddStorageOption(command, &arguments->storage);
  command->add_option("--samples", arguments->options.samples, "Samples to read and decode")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--sheet", arguments->options.sheet,
                      "Draw some of these samples into this file (PNG)");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments, exit_code] { *exit_code = RunInspect(*arguments); });
}

}  // namespace hetero::commands
