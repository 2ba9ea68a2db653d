#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <iostream>
#include <memory>
#include <stop_token>
#include <string>

#include "base/log.h"
#include "base/signals.h"
#include "runtime/local/dataset_lines.h"
#include "runtime/local/index.h"
#include "runtime/program/commands.h"
#include "runtime/program/progress_line.h"
#include "runtime/program/source_options.h"

namespace hetero::commands {
namespace {

int RunIndex(const local::IndexOptions& given) {
  const base::SignalStop signals;
  log::Init("index", log::Level::kWarning);
  local::IndexOptions options = given;
  options.source.uri = UriOf(options.source.uri);
  options.destination = UriOf(options.destination);
  options.stop = signals.first();
  ProgressLine line;
  std::atomic<bool> begun = false;
  options.on_progress = [&](const local::IndexProgress& progress) {
    begun = true;
    line.Show(local::ProgressText(progress, line.seconds()), progress.bytes == progress.all_bytes);
  };
  // What is not begun has nothing to leave in order, and a store may keep it waiting for minutes.
  const auto at_once = [] { _exit(kExitStopped); };
  const std::stop_callback before_it_began(signals.first(), [&begun, at_once] {
    if (!begun) at_once();
  });
  const std::stop_callback asked_twice(signals.second(), at_once);
  if (const absl::Status status = CheckLabelOptions(options.label); !status.ok()) {
    std::cerr << status.message() << "\n";
    return kExitUsage;
  }
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
  auto options = std::make_shared<local::IndexOptions>();
  command->add_option("SOURCE", options->source.uri, "dataset.uri of a manifest, or a folder")
      ->required();
  command
      ->add_option("INDEX", options->destination,
                   "file:///folder/name, s3://bucket/key, or a path; in the dataset itself a name "
                   "that begins with _")
      ->required();
  AddSourceOptions(command, "--format", &options->source, &options->label);
  command->callback([options, exit_code] { *exit_code = RunIndex(*options); });
}

}  // namespace hetero::commands
