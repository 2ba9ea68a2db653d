#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "runtime/install/install.h"
#include "runtime/program/commands.h"

namespace hetero::commands {
namespace {

int RunInstall(const install::Options& options) {
  const absl::StatusOr<install::Installed> installed = install::Install(options);
  if (!installed.ok()) {
    std::cerr << "install: " << installed.status().message() << "\n";
    return absl::IsInvalidArgument(installed.status()) ? kExitUsage : kExitFailed;
  }
  std::cout << installed->program << ": " << installed->files << " files, "
            << (installed->bytes >> 20) << " MiB; Python finds the package in " << installed->python
            << "\n";
  return kExitSucceeded;
}

}  // namespace

void AddInstall(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("install",
                                         "Copy this program, its libraries and the Python package "
                                         "into a folder from which they run in "
                                         "any image");
  auto options = std::make_shared<install::Options>();
  command->add_option("FOLDER", options->folder, "Folder to fill; made when it is not there")
      ->required();
  command->add_option("--package", options->package,
                      "Folder that holds the Python package; default: where the image has it");
  command->callback([options, exit_code] { *exit_code = RunInstall(*options); });
}

}  // namespace hetero::commands
