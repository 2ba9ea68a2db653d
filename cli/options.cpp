#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "base/version.h"

namespace hetero::cli {
namespace {

constexpr char kExamples[] = R"(Examples:
  kubectl hetero status vit-blur         # one screen, kept up to date until the job ends
  kubectl hetero logs vit-blur --role gpu -f
  kubectl hetero suspend vit-blur        # its pods go, its checkpoint stays
  kubectl hetero resume vit-blur
  kubectl hetero report vit-blur
  kubectl hetero validate job.yaml       # needs no cluster
kubectl hetero VERB --help has more.)";

// Below each verb's own flags.
constexpr char kEverywhere[] = R"(
Also -n/--namespace, --kubeconfig and --context, as in kubectl hetero --help.)";

constexpr char kStatusHelp[] = R"(Examples:
  kubectl hetero status vit-blur                  # until the job ends; Ctrl-C leaves it alone
  kubectl hetero status vit-blur --once           # now
  kubectl hetero status vit-blur --once -o json | jq .progress
  kubectl hetero status vit-blur --timeout 3600   # in a script: waits for the end
Without a terminal it prints a line per change (-o json: the status, on one line each).
Exit codes: 0 the job succeeded (--once: it was read), 1 it failed or cannot be read,
2 wrong usage, 3 --timeout passed, 130 Ctrl-C.)";

constexpr char kLogsHelp[] = R"(Examples:
  kubectl hetero logs vit-blur                    # one pod after the other
  kubectl hetero logs vit-blur -f                 # all at once, and pods that come later
  kubectl hetero logs vit-blur --role gpu --index 0
Each line begins with its pod: "gpu-0 | step 40 ...".)";

constexpr char kSuspendHelp[] = R"(Example:
  kubectl hetero suspend vit-blur
Its pods are deleted; configuration and checkpoints stay. resume starts a new attempt.)";

constexpr char kResumeHelp[] = R"(Example:
  kubectl hetero resume vit-blur
A new attempt begins at the last checkpoint.)";

constexpr char kReportHelp[] = R"(Examples:
  kubectl hetero report vit-blur
  kubectl hetero report vit-blur -o json | jq .accuracy
  kubectl hetero report vit-blur --save out       # out/report.json, out/report.html
With output.uri: file:///... the report is on a volume of the head. Then -o json, -o html and --save
read it through a pod that mounts this volume and is deleted at once; otherwise -o json prints
status.result.)";

constexpr char kValidateHelp[] = R"(Examples:
  kubectl hetero validate job.yaml
  kubectl hetero validate job.yaml --server       # the API server's opinion too; nothing is created
  sed s/SEED/7/ job.yaml | kubectl hetero validate -
Exit codes: 0 it is valid, 1 it is not; each mistake is named with its field and line.)";

CLI::App* AddVerb(CLI::App& app, const char* name, const char* description, const char* help,
                  Verb verb, Options& options) {
  CLI::App* sub = app.add_subcommand(name, description);
  sub->footer(std::string(help) + kEverywhere);
  sub->callback([verb, &options] { options.verb = verb; });
  sub->fallthrough();
  return sub;
}

void AddJob(CLI::App* sub, Options& options) {
  sub->add_option("JOB", options.job, "Name of the job")->type_name(" ")->required();
}

void AddOutput(CLI::App* sub, Options& options, const std::vector<std::string>& formats,
               const char* description) {
  sub->add_option_function<std::string>(
         "-o,--output",
         [&options](const std::string& format) {
           options.output = format == "json"   ? OutputFormat::kJson
                            : format == "html" ? OutputFormat::kHtml
                                               : OutputFormat::kText;
         },
         description)
      ->type_name("FORMAT")
      ->check(CLI::IsMember(formats).description(""));
}

void AddVerbs(CLI::App& app, Options& options) {
  CLI::App* status =
      AddVerb(app, "status", "How a job is doing", kStatusHelp, Verb::kStatus, options);
  AddJob(status, options);
  AddOutput(status, options, {"text", "json"}, "text or json");
  status->add_flag("--once", options.once, "Print once and end");
  status->add_option("--timeout", options.timeout_seconds, "Seconds to wait for the job's end")
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 1 << 30).description(""));
  CLI::App* logs =
      AddVerb(app, "logs", "Logs of all pods of a job", kLogsHelp, Verb::kLogs, options);
  AddJob(logs, options);
  logs->add_option("--role", options.role, "Of this role only")->type_name("ROLE");
  logs->add_option("--index", options.index, "Of this replica only, from 0")
      ->type_name("INDEX")
      ->check(CLI::Range(0, 1 << 30).description(""));
  logs->add_flag("-f,--follow", options.follow, "Go on as they are written");
  AddJob(AddVerb(app, "suspend", "Delete a job's pods and keep the job", kSuspendHelp,
                 Verb::kSuspend, options),
         options);
  AddJob(AddVerb(app, "resume", "Let a suspended job go on", kResumeHelp, Verb::kResume, options),
         options);
  CLI::App* report =
      AddVerb(app, "report", "What a finished job came to", kReportHelp, Verb::kReport, options);
  AddJob(report, options);
  AddOutput(report, options, {"text", "json", "html"}, "text, json or html");
  report->add_option("--save", options.save_folder, "Write report.json and report.html there")
      ->type_name("FOLDER");
  report
      ->add_option("--image", options.image,
                   "Of the pod that reads the report; default: the head's")
      ->type_name("IMAGE");
  CLI::App* validate = AddVerb(app, "validate", "Check a manifest without running it",
                               kValidateHelp, Verb::kValidate, options);
  validate->add_option("FILE", options.file, "Manifest; - reads standard input")
      ->type_name(" ")
      ->required();
  validate->add_flag("--server", options.server, "Have the API server check it too (dry run)");
}

}  // namespace

std::optional<int> ParseOptions(int argc, const char* const* argv, std::ostream& out,
                                std::ostream& err, Options& options) {
  CLI::App app("Looks after HeteroTrainingJobs with the rights of your kubeconfig",
               "kubectl hetero");
  app.footer(kExamples);
  app.set_version_flag("--version", "kubectl-hetero " + base::DescribeVersion());
  app.require_subcommand(1);
  app.add_option("-n,--namespace", options.name_space, "Default: the context's")->type_name("NAME");
  app.add_option("--kubeconfig", options.kubeconfig,
                 "Default: $KUBECONFIG, ~/.kube/config, a pod's own")
      ->type_name("FILE");
  app.add_option("--context", options.context, "Default: the current one")->type_name("NAME");
  AddVerbs(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    if (!app.get_subcommands().empty()) {
      app.exit(error, out, err);
      return kExitUsage;
    }
    err << "Name what to do: status, logs, suspend, resume, report or validate\n"
           "Run with --help for more information.\n";
    return kExitUsage;
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error, out, err);
    return code == 0 ? 0 : kExitUsage;
  }
  return std::nullopt;
}

}  // namespace hetero::cli
