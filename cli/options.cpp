#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <map>
#include <ostream>

#include "base/version.h"

namespace hetero::cli {
namespace {

constexpr char kExamples[] = R"(Examples:
  kubectl hetero status vit-blur            # one screen, kept up to date until the job ends
  kubectl hetero status vit-blur --once -o json
  kubectl hetero logs vit-blur --role gpu -f
  kubectl hetero suspend vit-blur           # pods go, the checkpoint stays
  kubectl hetero resume vit-blur
  kubectl hetero report vit-blur
  kubectl hetero validate job.yaml          # without a cluster; --server asks the API server too

status ends with 0 when the job succeeded, 1 when it failed or an error kept it from being read,
and 3 when --timeout passed first.)";

CLI::App* AddVerb(CLI::App& app, const char* name, const char* description, Verb verb,
                  Options& options) {
  CLI::App* sub = app.add_subcommand(name, description);
  sub->callback([verb, &options] { options.verb = verb; });
  sub->fallthrough();
  return sub;
}

void AddJob(CLI::App* sub, Options& options) {
  sub->add_option("JOB", options.job, "Name of the job")->required();
}

void AddOutput(CLI::App* sub, Options& options) {
  static const std::map<std::string, OutputFormat> kFormats = {{"text", OutputFormat::kText},
                                                               {"json", OutputFormat::kJson}};
  sub->add_option("-o,--output", options.output, "text or json")
      ->transform(CLI::CheckedTransformer(kFormats).description(""));
}

void AddVerbs(CLI::App& app, Options& options) {
  CLI::App* status = AddVerb(app, "status", "How a job is doing", Verb::kStatus, options);
  AddJob(status, options);
  AddOutput(status, options);
  status->add_flag("--once", options.once, "Print once and end");
  status->add_option("--timeout", options.timeout_seconds, "Seconds to wait for the job's end")
      ->check(CLI::Range(1, 1 << 30));
  CLI::App* logs = AddVerb(app, "logs", "Logs of all pods of a job", Verb::kLogs, options);
  AddJob(logs, options);
  logs->add_option("--role", options.role, "Of this role only");
  logs->add_option("--index", options.index, "Of this replica only")->check(CLI::Range(0, 1 << 30));
  logs->add_flag("-f,--follow", options.follow, "Go on as they are written");
  AddJob(AddVerb(app, "suspend", "Delete a job's pods and keep the job", Verb::kSuspend, options),
         options);
  AddJob(AddVerb(app, "resume", "Let a suspended job go on", Verb::kResume, options), options);
  CLI::App* report = AddVerb(app, "report", "What a finished job came to", Verb::kReport, options);
  AddJob(report, options);
  AddOutput(report, options);
  CLI::App* validate =
      AddVerb(app, "validate", "Check a manifest without running it", Verb::kValidate, options);
  validate->add_option("FILE", options.file, "Manifest; - reads standard input")->required();
  validate->add_flag("--server", options.server, "Have the API server check it too (dry run)");
}

}  // namespace

std::optional<int> ParseOptions(int argc, const char* const* argv, std::ostream& out,
                                std::ostream& err, Options& options) {
  CLI::App app("Looks after HeteroTrainingJobs with the rights of your kubeconfig",
               "kubectl-hetero");
  app.footer(kExamples);
  app.set_version_flag("--version", std::string("kubectl-hetero ") + base::kVersion);
  app.require_subcommand(1);
  app.add_option("-n,--namespace", options.name_space, "Default: the context's");
  app.add_option("--kubeconfig", options.kubeconfig, "Default: $KUBECONFIG, ~/.kube/config");
  app.add_option("--context", options.context, "Default: the current one");
  AddVerbs(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error, out, err);
    return code == 0 ? 0 : kExitUsage;
  }
  return std::nullopt;
}

}  // namespace hetero::cli
