#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/version.h"

namespace hetero::cli {
namespace {

constexpr char kExamples[] = R"(Examples:
  kubectl hetero list -A                 # all jobs, one a line
  kubectl hetero status vit-blur         # one screen, kept up to date until the job ends
  kubectl hetero top vit-blur            # who of it does how much
  kubectl hetero cost vit-blur           # what it has cost
  kubectl hetero logs vit-blur --role gpu -f
  kubectl hetero suspend vit-blur        # its pods go, its checkpoint stays
  kubectl hetero resume vit-blur
  kubectl hetero report vit-blur
  kubectl hetero validate job.yaml       # needs no cluster
kubectl hetero VERB --help has more.)";

// Below each verb's own flags.
constexpr char kEverywhere[] = R"(
Also -n/--namespace, --kubeconfig, --context, --as and --request-timeout, as in
kubectl hetero --help.)";

constexpr char kListHelp[] = R"(Examples:
  kubectl hetero list                             # of the namespace
  kubectl hetero list -A -o wide
  kubectl hetero list -l team=vision -w           # goes on until Ctrl-C
  kubectl hetero list -o json | jq '.items[].status.progress.step'
WORKERS are the CPU workers that have registered of those wanted, WAIT is the share of their time in
which GPU workers wait for data. A job in a queue of Kueue has its place there, where Kueue tells it.
-w prints a line per change without a terminal (-o json: each object).)";

constexpr char kTopHelp[] = R"(Examples:
  kubectl hetero top vit-blur                     # now; takes three seconds to measure, and more where kubectl is needed
  kubectl hetero top vit-blur -w                  # kept up to date until Ctrl-C
CPU and MEMORY need metrics-server in the cluster. SAMPLES/S, SHARE, WAIT and RESTARTS are the
head's: that needs the right to get pods/proxy or to create pods/portforward (the role edit has
both). Where NetworkPolicies keep the API server from pods, kubectl port-forward brings them.
What is not known is "-".)";

constexpr char kCostHelp[] = R"(Examples:
  kubectl hetero cost vit-blur                    # by role; the total, and how sure it is
  kubectl hetero cost                             # each job of the namespace, and their sum
  kubectl hetero cost -A -l team=vision
  kubectl hetero cost vit-blur -o json | jq .cost.dollars
Dollars are those of status.cost, which the operator keeps: from pods' times and the prices that
roles state, or those of nodes in the operator's price sheet.)";

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
                            : format == "wide" ? OutputFormat::kWide
                            : format == "name" ? OutputFormat::kName
                                               : OutputFormat::kText;
         },
         description)
      ->type_name("FORMAT")
      ->check(CLI::IsMember(formats).description(""));
}

// "30s", "1m30s", or seconds; 0 is no limit, which here is a year.
std::string ReadTimeout(const std::string& text, base::Duration& timeout) {
  absl::Duration parsed;
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size()) {
    parsed = absl::Seconds(seconds);
  } else if (!absl::ParseDuration(text, &parsed)) {
    return "\"" + text + "\" is no duration such as 30s or 2m";
  }
  if (parsed < absl::ZeroDuration()) return "\"" + text + "\" is negative";
  const absl::Duration longest = absl::Hours(24 * 365);
  if (parsed == absl::ZeroDuration() || parsed > longest) parsed = longest;
  timeout = absl::ToChronoNanoseconds(parsed);
  return "";
}

void AddConnection(CLI::App& app, Options& options) {
  app.add_option("-n,--namespace", options.name_space, "Default: the context's")->type_name("NAME");
  app.add_option("--kubeconfig", options.kubeconfig,
                 "Default: $KUBECONFIG, ~/.kube/config, a pod's own")
      ->type_name("FILE");
  app.add_option("--context", options.context, "Default: the current one")->type_name("NAME");
  app.add_option("--as", options.act_as, "Act as this user, whom you may impersonate")
      ->type_name("USER");
  app.add_option_function<std::string>(
         "--request-timeout",
         [&options](const std::string& text) {
           const std::string wrong = ReadTimeout(text, options.request_timeout);
           if (!wrong.empty()) throw CLI::ValidationError("--request-timeout", wrong);
         },
         "Of one call of the API, but no watch: 30s (default), 2m, 0 for none")
      ->type_name("TIME");
}

void AddLists(CLI::App& app, Options& options) {
  CLI::App* list = AddVerb(app, "list", "All jobs, one a line", kListHelp, Verb::kList, options);
  list->alias("ls");
  list->add_flag("-A,--all-namespaces", options.all_namespaces, "Of all namespaces");
  list->add_option("-l,--selector", options.selector, "Of labels: team=vision,stage!=test")
      ->type_name("SELECTOR");
  list->add_flag("-w,--watch", options.watch, "Go on, and show what changes");
  AddOutput(list, options, {"text", "wide", "json", "name"}, "text, wide, json or name");
  CLI::App* top =
      AddVerb(app, "top", "What each pod of a job does and takes", kTopHelp, Verb::kTop, options);
  AddJob(top, options);
  CLI::App* cost = AddVerb(app, "cost", "What a job, or all of them, have cost", kCostHelp,
                           Verb::kCost, options);
  CLI::Option* job =
      cost->add_option("JOB", options.job, "Name of the job; default: all")->type_name(" ");
  cost->add_flag("-A,--all-namespaces", options.all_namespaces, "Of all namespaces")->excludes(job);
  cost->add_option("-l,--selector", options.selector, "Of labels: team=vision,stage!=test")
      ->type_name("SELECTOR")
      ->excludes(job);
  AddOutput(cost, options, {"text", "json"}, "text or json");
  top->add_flag("-w,--watch", options.watch, "Go on until the job ends");
}

void AddVerbs(CLI::App& app, Options& options) {
  AddLists(app, options);
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
  AddConnection(app, options);
  AddVerbs(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    if (!app.get_subcommands().empty()) {
      app.exit(error, out, err);
      return kExitUsage;
    }
    err << "Name what to do: list, status, top, cost, logs, suspend, resume, report or validate\n"
           "Run with --help for more information.\n";
    return kExitUsage;
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error, out, err);
    return code == 0 ? 0 : kExitUsage;
  }
  return std::nullopt;
}

}  // namespace hetero::cli
