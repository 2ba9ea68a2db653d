#include <CLI/CLI.hpp>

#include "base/version.h"
#include "runtime/process/secret_variables.h"
#include "runtime/program/commands.h"

int main(int argc, char** argv) {
  using namespace hetero;
  process::ProtectSecretVariables();
  CLI::App app{
      "hetero-runtime runs HeteroTrainingJobs: CPU workers preprocess and stream batches to "
      "trainers.\n"
      "Start with:  hetero-runtime local examples/quickstart-kubernetes.yaml"};
  app.set_version_flag("--version", "hetero-runtime " + base::DescribeVersion());
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  int exit_code = commands::kExitSucceeded;
  commands::AddLocal(app, &exit_code);
  commands::AddValidate(app, &exit_code);
  commands::AddPreview(app, &exit_code);
  commands::AddInspect(app, &exit_code);
  commands::AddIndex(app, &exit_code);
  commands::AddPack(app, &exit_code);
  commands::AddMakeDataset(app, &exit_code);
  commands::AddReport(app, &exit_code);
  commands::AddCompare(app, &exit_code);
  commands::AddInstall(app, &exit_code);
  commands::AddHead(app, &exit_code);
  commands::AddCpuWorker(app, &exit_code);
  commands::AddConsumer(app, &exit_code);
  commands::AddAgent(app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? commands::kExitSucceeded : commands::kExitUsage;
  }
  return exit_code;
}
