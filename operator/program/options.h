#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "base/log.h"
#include "operator/children/settings.h"

// The command line of hetero-operator. Each flag can also come from the environment:
// --lease-name is HETERO_OPERATOR_LEASE_NAME. The command line wins, and of a flag that is given
// more than once the last; lists are added up.
namespace hetero::program {

struct OperatorOptions {
  // Cluster
  std::string kubeconfig;  // empty: as kubectl, in-cluster included
  std::string context;
  std::vector<std::string> watch_namespaces;   // empty: all, and nodes are watched too
  bool kueue = false;                          // jobs may have a queue
  std::vector<api::GangScheduler> gangs;       // that jobs may name
  std::vector<std::string> disruption_taints;  // besides those that are known
  std::string price_sheet;                     // a file; empty: nodes have no prices
  std::string operator_namespace;              // empty: that of the cluster access
  std::string identity_secret = "hetero-operator-identity";

  // Leader election
  bool leader_elect = true;
  std::string lease_namespace;  // empty: operator_namespace
  std::string lease_name = "hetero-operator";
  base::Duration lease_duration = std::chrono::seconds(15);
  base::Duration renew_deadline = std::chrono::seconds(10);
  base::Duration retry_period = std::chrono::seconds(2);
  std::string identity;  // never empty after parsing

  // Capacity
  int workers = 16;
  double qps = 200;
  int burst = 400;
  int parallelism = 50;

  // Jobs; `operator_namespace` of the settings is filled in by the caller
  children::Settings settings;

  // Observation
  std::string metrics_address;  // empty: all
  int metrics_port = 8080;
  std::string probes_address;  // empty: all
  int probes_port = 8081;
  std::string page_address = "127.0.0.1";
  std::optional<int> page_port = 8082;  // none: no page of all jobs
  log::Level log_level = log::Level::kInfo;
};

inline constexpr int kExitUsage = 2;

// Reads the command line and the environment. Gives the exit code when the process is to end now:
// 0 after --help and --version (written to `out`), kExitUsage after a mistake, which `err` then
// names with its flag and remedy.
std::optional<int> ParseOptions(int argc, const char* const* argv, std::ostream& out,
                                std::ostream& err, OperatorOptions& options);

}  // namespace hetero::program
