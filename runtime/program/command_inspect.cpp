#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <system_error>

#include "api/enums.h"
#include "base/log.h"
#include "runtime/local/inspection.h"
#include "runtime/program/commands.h"

namespace hetero::commands {
namespace {

struct InspectArguments {
  local::InspectOptions options;
  bool json = false;
};

template <typename Type>
std::map<std::string, Type> NamesOf() {
  std::map<std::string, Type> names;
  for (const auto& [value, name] : api::EnumNames<Type>::Values()) names[std::string(name)] = value;
  return names;
}

// A path of this machine is taken for the folder that it is.
std::string UriOf(const std::string& given) {
  if (given.find("://") != std::string::npos) return given;
  std::error_code ignored;
  const std::filesystem::path path = std::filesystem::absolute(given, ignored);
  return "file://" + path.lexically_normal().string();
}

int RunInspect(const InspectArguments& arguments) {
  log::Init("inspect", log::Level::kWarning);
  local::InspectOptions options = arguments.options;
  options.source.uri = UriOf(options.source.uri);
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
  api::Label& label = arguments->options.label;
  command->add_option("URI", source.uri, "dataset.uri of a manifest, or a folder")->required();
  command->add_option("--format", source.format, "dataset.format; default: told by what is found")
      ->transform(CLI::CheckedTransformer(NamesOf<api::DatasetFormat>(), CLI::ignore_case));
  command->add_option("--image", source.fields.image, "dataset.fields.image");
  command->add_option("--label", source.fields.label.field, "dataset.fields.label.field");
  command->add_option("--label-offset", source.fields.label.offset, "dataset.fields.label.offset");
  command->add_option("--label-type", label.type, "dataset.label.type")
      ->transform(CLI::CheckedTransformer(NamesOf<api::LabelType>(), CLI::ignore_case));
  command->add_option("--label-field", label.field, "dataset.label.field");
  command->add_option("--label-shape", label.shape, "dataset.label.shape, as 2,3")->delimiter(',');
  command->add_option("--samples", arguments->options.samples, "Samples to read and decode")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--sheet", arguments->options.sheet,
                      "Draw some of these samples into this file (PNG)");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments, exit_code] { *exit_code = RunInspect(*arguments); });
}

}  // namespace hetero::commands
