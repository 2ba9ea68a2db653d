#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "runtime/local/dataset_lines.h"
#include "runtime/local/pack.h"
#include "runtime/program/commands.h"
#include "runtime/program/one_of.h"
#include "runtime/program/progress_line.h"
#include "runtime/program/source_options.h"
#include "runtime/program/stoppable_command.h"

namespace hetero::commands {
namespace {

struct PackArguments {
  local::PackOptions options;
  std::string storage;  // a manifest
  bool no_verify = false;
};

// Shards have numbers in the place of names, which must be the same for all splits of a job.
void PrintClasses(const std::vector<std::string>& names) {
  constexpr size_t kMostPrinted = 20;
  if (names.empty()) return;
  std::cout << "classes are numbers now, and must be the same ones in every split:";
  for (size_t i = 0; i < std::min(names.size(), kMostPrinted); ++i) {
    std::cout << (i == 0 ? " " : ", ") << i << " " << names[i];
  }
  if (names.size() > kMostPrinted) std::cout << " and " << names.size() - kMostPrinted << " more";
  std::cout << "\n";
}

int RunPack(const PackArguments& arguments) {
  StoppableCommand command;
  log::Init("pack", log::Level::kWarning);
  local::PackOptions options = arguments.options;
  options.source.uri = UriOf(options.source.uri);
  options.destination = UriOf(options.destination);
  options.verify = !arguments.no_verify;
  options.stop = command.stop();
  ProgressLine line;
  options.on_progress = [&](const auto& progress, int64_t samples) {
    command.Begin();
    line.Show(local::ProgressText(progress, samples, line.seconds()), progress.samples == samples);
  };
  absl::Status usable = CheckLabelOptions(options.label);
  usable.Update(local::CheckPackOptions(options));
  if (!usable.ok()) {
    std::cerr << usable.message() << "\n";
    return kExitUsage;
  }
  std::optional<std::vector<api::StorageAccess>> storage = LoadStorage(arguments.storage);
  if (!storage) return kExitUsage;
  options.storage = *std::move(storage);
  const absl::StatusOr<local::Packed> packed = local::PackDataset(options);
  line.End();
  if (!packed.ok()) {
    std::cerr << packed.status().message() << "\n";
    return absl::IsCancelled(packed.status()) ? kExitStopped : kExitFailed;
  }
  if (packed->progress.kept > 0) {
    std::cout << packed->progress.kept << " samples were packed already\n";
  }
  PrintClasses(packed->class_names);
  std::cout << local::DatasetLines(packed->source, packed->label) << std::flush;
  return std::cout ? kExitSucceeded : kExitFailed;
}

}  // namespace

void AddPack(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "pack",
      "Put a dataset's samples into shards (WebDataset or MDS); goes on where it was stopped");
  auto arguments = std::make_shared<PackArguments>();
  local::PackOptions& options = arguments->options;
  command->add_option("SOURCE", options.source.uri, "dataset.uri of a manifest, or a folder")
      ->required();
  command
      ->add_option("DESTINATION", options.destination,
                   "file:///folder, s3://bucket/prefix, or a folder; empty, or packed in part")
      ->required();
  command
      ->add_option(
          "--format", options.format,
          "WebDataset, or MDS of MosaicML's streaming: columns image and label, index.json "
          "at the end")
      ->transform(OneOf<api::DatasetFormat>(
          {{"WebDataset", api::DatasetFormat::kWebDataset}, {"MDS", api::DatasetFormat::kMds}}))
      ->default_str("WebDataset");
  command
      ->add_option("--shard-size", options.shard_bytes,
                   "Most bytes of a shard, as 256MB; one of MDS is held in memory while it is "
                   "packed, and has less than 4GiB")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true))
      ->check(CLI::Range(int64_t{1} << 16, int64_t{100'000'000'000}))
      ->default_str("256MB");
  AddSourceOptions(command, "--source-format", &options.source, &options.label);
  AddStorageOption(command, &arguments->storage);
  command->add_flag("--no-verify", arguments->no_verify, "Do not read each shard back");
  command->callback([arguments, exit_code] { *exit_code = RunPack(*arguments); });
}

}  // namespace hetero::commands
