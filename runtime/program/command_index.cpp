#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "runtime/local/dataset_lines.h"
#include "runtime/local/index.h"
#include "runtime/program/commands.h"
#include "runtime/program/progress_line.h"
#include "runtime/program/source_options.h"
#include "runtime/program/stoppable_command.h"

namespace hetero::commands {
namespace {

struct IndexArguments {
  local::IndexOptions options;
  std::string storage;  // a manifest
};

int RunIndex(const IndexArguments& arguments) {
  StoppableCommand command;
  log::Init("index", log::Level::kWarning);
  local::IndexOptions options = arguments.options;
  options.source.uri = UriOf(options.source.uri);
  options.destination = UriOf(options.destination);
  options.stop = command.stop();
  ProgressLine line;
  options.on_progress = [&](const local::IndexProgress& progress) {
    command.Begin();
    line.Show(local::ProgressText(progress, line.seconds()), progress.bytes == progress.all_bytes);
  };
  if (const absl::Status status = CheckLabelOptions(options.label); !status.ok()) {
    std::cerr << status.message() << "\n";
    return kExitUsage;
  }
  std::optional<std::vector<api::StorageAccess>> storage = LoadStorage(arguments.storage);
  if (!storage) return kExitUsage;
  options.storage = *std::move(storage);
  const absl::StatusOr<local::Indexed> indexed = local::IndexDataset(options);
  line.End();
  if (!indexed.ok()) {
    std::cerr << indexed.status().message() << "\n";
    return absl::IsCancelled(indexed.status()) ? kExitStopped : kExitFailed;
  }
  std::cout << local::SummaryText(*indexed) << "\n"
            << local::DatasetLines(indexed->source, indexed->label) << std::flush;
  return std::cout ? kExitSucceeded : kExitFailed;
}

}  // namespace

void AddIndex(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "index", "Write down where the samples of a dataset's shards lie, for dataset.index.uri");
  auto arguments = std::make_shared<IndexArguments>();
  local::IndexOptions& options = arguments->options;
  command->add_option("SOURCE", options.source.uri, "dataset.uri of a manifest, or a folder")
      ->required();
  command
      ->add_option("INDEX", options.destination,
                   "file:///folder/name, s3://bucket/key, or a path; in the dataset itself a name "
                   "that begins with _")
      ->required();
  AddSourceOptions(command, "--format", &options.source, &options.label);
  AddStorageOption(command, &arguments->storage);
  command->callback([arguments, exit_code] { *exit_code = RunIndex(*arguments); });
}

}  // namespace hetero::commands
