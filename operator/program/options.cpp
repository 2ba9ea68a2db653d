#include "operator/program/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <ostream>
#include <random>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/storage_defaults.h"
#include "base/version.h"
#include "operator/children/pod_group.h"
#include "operator/program/option_values.h"

namespace hetero::program {
namespace {

constexpr char kDescription[] =
    "hetero-operator runs HeteroTrainingJobs in a Kubernetes cluster.\n"
    "Each flag can also be set in the environment: --lease-name is HETERO_OPERATOR_LEASE_NAME.";

constexpr char kNoAddress[] = "none";

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Unique also among processes of one machine, and of one pod's restarts.
std::string DefaultIdentity() {
  std::string identity = FromEnvironment("POD_NAME");
  if (identity.empty()) {
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    identity = std::string(host) + "-" + std::to_string(getpid());
  }
  static constexpr char kDigits[] = "0123456789abcdef";
  std::random_device random;
  identity += '_';
  for (int i = 0; i < 8; ++i) identity += kDigits[random() % 16];
  return identity;
}

// The flags, with those values that need a second look as text.
class Flags {
 public:
  explicit Flags(OperatorOptions& options) : options_(options) {
    app_.failure_message(CLI::FailureMessage::simple);
    app_.set_version_flag("--version", "hetero-operator " + base::DescribeVersion());
    AddCluster();
    AddLeaderElection();
    AddCapacity();
    AddJobs();
    AddObservation();
    for (CLI::Option* option : app_.get_options()) {
      NameInEnvironment(*option);
      // Whoever adds flags to those of the chart means to override them. Lists are added up.
      if (option->get_items_expected_max() == 1) {
        option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
      }
    }
    app_.callback([this] { Check(); });
  }

  std::optional<int> Parse(int argc, const char* const* argv, std::ostream& out,
                           std::ostream& err) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app_.exit(error, out, err) == 0 ? 0 : kExitUsage;
    }
    return std::nullopt;
  }

 private:
  // A value that `read` turns into what it stands for, or an error.
  template <typename T>
  CLI::Option* Parsed(const std::string& flag, T& value,
                      std::function<absl::StatusOr<T>(const std::string&)> read,
                      const std::string& shown_default, const std::string& help) {
    return app_
        .add_option_function<std::string>(
            flag,
            [flag, &value, read = std::move(read)](const std::string& text) {
              absl::StatusOr<T> parsed = read(text);
              if (!parsed.ok()) {
                throw CLI::ValidationError(flag, std::string(parsed.status().message()));
              }
              value = *std::move(parsed);
            },
            help)
        ->default_str(shown_default);
  }
  CLI::Option* Duration(const std::string& flag, base::Duration& value, const std::string& help) {
    return Parsed<base::Duration>(flag, value, ParseDuration, FormatDuration(value), help);
  }

  CLI::Option* Listen(const std::string& flag, std::string& address, int& port,
                      const std::string& help) {
    return app_
        .add_option_function<std::string>(
            flag,
            [flag, &address, &port](const std::string& text) {
              const absl::StatusOr<std::pair<std::string, int>> parsed = ParseListenAddress(text);
              if (!parsed.ok()) {
                throw CLI::ValidationError(flag, std::string(parsed.status().message()));
              }
              std::tie(address, port) = *parsed;
            },
            help)
        ->default_str(address + ":" + std::to_string(port));
  }

  // As Listen(), or none at all.
  CLI::Option* ListenUnlessNone(const std::string& flag, std::string& address,
                                std::optional<int>& port, const std::string& help) {
    return app_
        .add_option_function<std::string>(
            flag,
            [flag, &address, &port](const std::string& text) {
              port.reset();
              if (text.empty() || text == kNoAddress) return;
              const auto parsed = ParseListenAddress(text);
              if (!parsed.ok()) {
                throw CLI::ValidationError(
                    flag,
                    absl::StrCat(std::string(parsed.status().message()), ", or ", kNoAddress));
              }
              std::tie(address, port) = *parsed;
            },
            help)
        ->default_str(absl::StrCat(address, ":", *port));
  }

  void AddCluster() {
    const std::string group = "Cluster";
    app_.add_option("--kubeconfig", options_.kubeconfig,
                    "Kubeconfig file; default: as kubectl, or the pod's service account")
        ->group(group);
    app_.add_option("--context", options_.context, "Context of the kubeconfig; default: current")
        ->group(group);
    app_.add_option("--watch-namespaces", options_.watch_namespaces,
                    "Comma-separated namespaces to run jobs in; default: all")
        ->delimiter(',')
        ->group(group);
    app_.add_flag("--kueue", options_.kueue,
                  "Run jobs with the label kueue.x-k8s.io/queue-name through Kueue's queues")
        ->group(group);
    app_.add_option("--disruption-taints", options_.disruption_taints,
                    "Comma-separated keys of taints that say that a node is about to go, besides "
                    "those of the known autoscalers; one that ends with / stands for all that "
                    "begin with it")
        ->delimiter(',')
        ->group(group);
    app_.add_option("--gangs", gangs_,
                    "Gang schedulers that jobs may name in spec.scheduling.gang: Volcano, "
                    "Coscheduling, Native; comma-separated or repeated; default: none")
        ->check(CLI::IsMember({"Volcano", "Coscheduling", "Native"}))
        ->delimiter(',')
        ->group(group);
    app_.add_option("--operator-namespace", options_.operator_namespace,
                    "Namespace of the operator; default: $POD_NAMESPACE, or the context's")
        ->group(group);
    app_.add_option("--identity-secret", options_.identity_secret,
                    "Secret in it with the operator's own certificate; made when it is missing")
        ->capture_default_str()
        ->group(group);
  }

  void AddLeaderElection() {
    const std::string group = "Leader election";
    app_.add_flag("--leader-elect,!--no-leader-elect", options_.leader_elect,
                  "Let one of several operators work at a time; default: yes")
        ->group(group);
    app_.add_option("--lease-namespace", options_.lease_namespace,
                    "Namespace of the lease; default: the operator's")
        ->group(group);
    app_.add_option("--lease-name", options_.lease_name, "Name of the lease")
        ->capture_default_str()
        ->group(group);
    Duration("--lease-duration", options_.lease_duration,
             "Others wait this long for a silent leader")
        ->group(group);
    Duration("--renew-deadline", options_.renew_deadline,
             "A leader that cannot renew for this long ends")
        ->group(group);
    Duration("--retry-period", options_.retry_period, "Between attempts to take or renew the lease")
        ->group(group);
    app_.add_option("--identity", options_.identity,
                    "Holder's name in the lease; default: $POD_NAME or host, and a random part")
        ->group(group);
  }

  void AddCapacity() {
    const std::string group = "Capacity";
    app_.add_option("--workers", options_.workers, "Jobs reconciled at once")
        ->check(CLI::Range(1, 256))
        ->capture_default_str()
        ->group(group);
    app_.add_option("--qps", options_.qps, "Calls per second to the API server")
        ->check(CLI::Range(1.0, 10000.0))
        ->capture_default_str()
        ->group(group);
    app_.add_option("--burst", options_.burst, "Calls at once above --qps")
        ->check(CLI::Range(1, 100000))
        ->capture_default_str()
        ->group(group);
    app_.add_option("--parallelism", options_.parallelism, "Calls at once of one job, at most")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str()
        ->group(group);
  }

  void AddJobs() {
    const std::string group = "Jobs";
    children::Settings& settings = options_.settings;
    app_.add_option("--runtime-image", settings.runtime_image, "Image of heads and CPU workers")
        ->capture_default_str()
        ->group(group);
    app_.add_option("--trainer-image", settings.trainer_image, "Image of GPU workers")
        ->capture_default_str()
        ->group(group);
    app_.add_flag(
            "--trainer-image-without-cuda,!--trainer-image-with-cuda", trainer_without_cuda_,
            "The image has no CUDA: jobs that want GPUs of it are refused; default: not known")
        ->group(group);
    app_.add_option("--image-pull-policy", settings.image_pull_policy,
                    "Of both; default: Kubernetes' own")
        ->check(CLI::IsMember({"Always", "IfNotPresent", "Never"}))
        ->group(group);
    app_.add_option("--image-pull-secret", settings.image_pull_secrets,
                    "Secrets in the jobs' namespaces for both, comma-separated or repeated")
        ->delimiter(',')
        ->group(group);
    app_.add_option("--operator-label", operator_labels_,
                    "Labels of the operator's pods, which jobs let in: k=v, comma-separated or "
                    "repeated; default: app.kubernetes.io/name=hetero-operator")
        ->delimiter(',')
        ->group(group);
    app_.add_option("--spot-labels", spot_labels_,
                    "By which of these labels nodes say that they may be taken away at any time: "
                    "k=v, comma-separated or repeated; default: those of Karpenter, EKS, GKE, AKS")
        ->delimiter(',')
        ->group(group);
    app_.add_option(
            "--price-sheet", options_.price_sheet,
            "YAML file with what nodes cost, by instance type and whether they may be taken "
            "away; for the cost of pods whose role states no pricePerHour; default: none")
        ->group(group);
    app_.add_option("--metrics-from", settings.metrics_from,
                    "Namespace whose pods may read the jobs' metrics; default: none")
        ->group(group);
    app_.add_option("--max-pods-per-job", settings.max_pods, "Jobs that want more are refused")
        ->check(CLI::Range(2, 80000))
        ->capture_default_str()
        ->group(group);
    Parsed<std::vector<api::StorageAccess>>(
        "--storage-defaults", settings.storage_defaults, api::ParseStorageDefaults, "[]",
        "How jobs reach stores that their spec.storage does not name: a list in JSON or YAML of "
        "entries as there, without secretRef")
        ->group(group);
    Duration("--pod-backoff", settings.pod_backoff,
             "Before a pod that ends soon is made for the third time; twice as long each time")
        ->group(group);
    Duration("--pod-backoff-limit", settings.pod_backoff_limit, "The longest of these waits")
        ->group(group);
    Duration("--node-lost-grace", settings.node_lost_grace,
             "Pods of a node that is not ready for longer are deleted by force")
        ->group(group);
    Duration("--pod-kill-grace", settings.pod_kill_grace,
             "Pods that outlive their own grace for longer are deleted by force")
        ->group(group);
  }

  void AddObservation() {
    const std::string group = "Observation";
    Listen("--metrics-listen", options_.metrics_address, options_.metrics_port,
           "Address of /metrics; an empty host is all addresses, of IPv6 too")
        ->group(group);
    Listen("--probes-listen", options_.probes_address, options_.probes_port,
           "Address of /healthz and /readyz, which is not that of /metrics: whoever may read "
           "those is not to keep the kubelet waiting")
        ->group(group);
    ListenUnlessNone("--page-listen", options_.page_address, options_.page_port,
                     "Address of the page of all jobs, which asks nobody who they are; none: there "
                     "is no such page")
        ->group(group);
    Parsed<log::Level>("--log-level", options_.log_level, ParseLevel, "info",
                       "debug, info, warning or error")
        ->group(group);
  }

  static void NameInEnvironment(CLI::Option& option) {
    const std::string name = option.get_lnames().empty() ? "" : option.get_lnames().front();
    if (name.empty() || name == "help" || name == "version") return;
    std::string variable = "HETERO_OPERATOR_";
    for (const char c : name) {
      variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    option.envname(variable);
  }

  void CheckNamespace(const std::string& flag, const std::string& name) {
    if (name.empty() || IsNamespaceName(name)) return;
    throw CLI::ValidationError(flag, "'" + name +
                                         "' is not the name of a namespace: use at most 63 lower "
                                         "case letters, digits and '-'");
  }
  void CheckObject(const std::string& flag, const std::string& name) {
    if (IsObjectName(name)) return;
    throw CLI::ValidationError(flag, "'" + name +
                                         "' is not the name of an object: use at most 253 lower "
                                         "case letters, digits, '-' and '.'");
  }

  // What involves more than one flag, or a flag and the environment.
  void Check() {
    options_.settings.price_sheet = !options_.price_sheet.empty();
    options_.settings.trainer_has_cuda = !trainer_without_cuda_;
    ReadGangs();
    if (!operator_labels_.empty()) {
      absl::StatusOr<std::map<std::string, std::string>> labels = ParseLabels(operator_labels_);
      if (!labels.ok()) {
        throw CLI::ValidationError("--operator-label", std::string(labels.status().message()));
      }
      options_.settings.operator_labels = *std::move(labels);
    }
    if (!spot_labels_.empty()) {
      absl::StatusOr<std::map<std::string, std::string>> labels = ParseLabels(spot_labels_);
      if (!labels.ok()) {
        throw CLI::ValidationError("--spot-labels", std::string(labels.status().message()));
      }
      options_.settings.spot_labels = *std::move(labels);
    }
    if (options_.operator_namespace.empty()) {
      options_.operator_namespace = FromEnvironment("POD_NAMESPACE");
    }
    for (const std::string& name : options_.watch_namespaces) {
      CheckNamespace("--watch-namespaces", name);
    }
    CheckNamespace("--operator-namespace", options_.operator_namespace);
    CheckNamespace("--lease-namespace", options_.lease_namespace);
    CheckNamespace("--metrics-from", options_.settings.metrics_from);
    CheckObject("--lease-name", options_.lease_name);
    CheckObject("--identity-secret", options_.identity_secret);
    for (const std::string& name : options_.settings.image_pull_secrets) {
      CheckObject("--image-pull-secret", name);
    }
    CheckLease();
    if (options_.identity.empty()) options_.identity = DefaultIdentity();
  }

  void ReadGangs() {
    using enum api::GangScheduler;
    for (const api::GangScheduler scheduler : {kVolcano, kCoscheduling, kNative}) {
      const bool named =
          std::find(gangs_.begin(), gangs_.end(), children::NameOf(scheduler)) != gangs_.end();
      if (named) options_.gangs.push_back(scheduler);
    }
  }

  // client-go's rules: a leader must have given up before others may take over.
  void CheckLease() {
    if (options_.lease_duration <= options_.renew_deadline) {
      throw CLI::ValidationError("--lease-duration", "must be longer than --renew-deadline (" +
                                                         FormatDuration(options_.renew_deadline) +
                                                         "); raise it");
    }
    if (base::ToSeconds(options_.renew_deadline) <= 1.2 * base::ToSeconds(options_.retry_period)) {
      throw CLI::ValidationError("--renew-deadline",
                                 "must be longer than 1.2 times --retry-period (" +
                                     FormatDuration(options_.retry_period) + "); raise it");
    }
    // Leases count in whole seconds.
    if (options_.lease_duration < std::chrono::seconds(1)) {
      throw CLI::ValidationError("--lease-duration", "must be at least 1s; raise it");
    }
  }

  OperatorOptions& options_;
  std::vector<std::string> operator_labels_;
  std::vector<std::string> spot_labels_;
  std::vector<std::string> gangs_;
  bool trainer_without_cuda_ = false;
  CLI::App app_{kDescription, "hetero-operator"};
};

}  // namespace

std::optional<int> ParseOptions(int argc, const char* const* argv, std::ostream& out,
                                std::ostream& err, OperatorOptions& options) {
  return Flags(options).Parse(argc, argv, out, err);
}

}  // namespace hetero::program
