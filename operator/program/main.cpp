#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/price_sheet.h"
#include "base/clock.h"
#include "base/grpc_lifetime.h"
#include "base/grpc_log.h"
#include "base/http_endpoint.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/signals.h"
#include "base/status_macros.h"
#include "base/thread.h"
#include "base/version.h"
#include "operator/controller/manager.h"
#include "operator/kube/cluster_access.h"
#include "operator/kube/leader_election.h"
#include "operator/kube/rest_transport.h"
#include "operator/page/jobs_port.h"
#include "operator/program/cluster_view.h"
#include "operator/program/identity_renewal.h"
#include "operator/program/job_worker.h"
#include "operator/program/memory.h"
#include "operator/program/operator_identity.h"
#include "operator/program/options.h"

// Wires the operator's parts: see docs/architecture.md for what they do.
namespace hetero::program {
namespace {

// Kubernetes kills a pod 30 s after SIGTERM; the last events take up to 3 s of them.
constexpr std::chrono::seconds kStopTimeout{25};

void LogStart(const OperatorOptions& options, const std::string& server) {
  std::string namespaces;
  for (const std::string& name : options.watch_namespaces) {
    namespaces += (namespaces.empty() ? "" : ",") + name;
  }
  log::Info("starting", {{"version", base::kVersion},
                         {"commit", base::Commit()},
                         {"server", server},
                         {"namespaces", namespaces.empty() ? "all" : namespaces},
                         {"leader_election", options.leader_elect},
                         {"identity", options.identity}});
}

absl::StatusOr<std::optional<reconcile::NodePrices>> ReadPrices(const OperatorOptions& options) {
  if (options.price_sheet.empty()) return std::nullopt;
  const auto wrong = [&options](absl::StatusCode code, const std::string& why) {
    return absl::Status(code, absl::StrCat("--price-sheet ", options.price_sheet, ": ", why));
  };
  std::ifstream file(options.price_sheet);
  std::ostringstream text;
  if (!(text << file.rdbuf())) {
    return wrong(absl::StatusCode::kNotFound, "the file cannot be read, or is empty");
  }
  absl::StatusOr<api::PriceSheet> sheet = api::ParsePriceSheet(text.str());
  if (!sheet.ok()) return wrong(sheet.status().code(), std::string(sheet.status().message()));
  log::Info("prices", {{"instance_types", sheet->instance_types.size()},
                       {"region", sheet->region},
                       {"date", sheet->date}});
  if (!options.watch_namespaces.empty()) {
    log::Warning(
        "nodes cannot be seen by an operator of some namespaces, so what they cost is of no "
        "use: only roles with pricePerHour have a price");
  }
  return reconcile::NodePrices{.sheet = *std::move(sheet),
                               .spot_labels = options.settings.spot_labels};
}

// Jobs are not to wait for a page that cannot be had.
void ShowJobs(const OperatorOptions& options, jobs_page::JobsPort& page) {
  if (!options.page_port) return;
  const absl::Status status = page.Start(options.page_address, *options.page_port);
  if (!status.ok()) {
    log::Warning("no page of all jobs; name another --page-listen, or none",
                 {{"error", status.message()}});
    return;
  }
  log::Info("page of all jobs", {{"address", options.page_address}, {"port", page.port()}});
}

absl::Status Run(OperatorOptions options, std::stop_token signal) {
  base::Clock& clock = base::Clock::Real();
  HETERO_ASSIGN_OR_RETURN(kube::ClusterAccess access,
                          kube::DefaultAccess(clock, options.kubeconfig, options.context));
  if (options.operator_namespace.empty()) options.operator_namespace = access.name_space;
  if (options.lease_namespace.empty()) options.lease_namespace = options.operator_namespace;
  options.settings.operator_namespace = options.operator_namespace;
  LogStart(options, access.server);
  HETERO_ASSIGN_OR_RETURN(std::optional<reconcile::NodePrices> prices, ReadPrices(options));
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<kube::Transport> transport,
                          kube::MakeRestTransport(std::move(access)));

  metrics::Registry registry;
  registry
      .GetGauge("hetero_operator_build_info", "1, with the version as label",
                {{"version", base::kVersion}})
      .Set(1);
  kube::Client client(*transport, clock, registry, {.qps = options.qps, .burst = options.burst});
  kube::Client lease_client(*transport, clock, registry, {.timeout = options.renew_deadline / 2});
  kube::Client event_client(*transport, clock, registry, {.timeout = std::chrono::seconds(1)});

  JobWorker jobs(options, client, event_client, clock, registry);
  ClusterView view(client, clock, registry,
                   {.namespaces = options.watch_namespaces,
                    .queues = options.kueue,
                    .gangs = options.gangs,
                    .disruption_taints = options.disruption_taints,
                    .prices = std::move(prices)},
                   [&](const std::string& key) { jobs.Enqueue(key); });
  kube::LeaderElection election(
      lease_client, clock, registry,
      {.lease = {.name_space = options.lease_namespace, .name = options.lease_name},
       .identity = options.identity,
       .lease_duration = options.lease_duration,
       .renew_deadline = options.renew_deadline,
       .retry_period = options.retry_period});

  std::stop_source end;
  const std::stop_callback on_signal(signal, [&] { end.request_stop(); });
  controller::Manager manager(clock, {.stop_timeout = kStopTimeout});
  view.AddTo(manager);
  manager.SetElection(
      [&](std::stop_token stop) {
        return options.leader_elect ? election.Acquire(std::move(stop)) : absl::OkStatus();
      },
      [&](std::stop_token stop) -> absl::Status {
        if (options.leader_elect) return election.Hold(stop);
        clock.SleepFor(base::Duration::max(), stop);
        return absl::OkStatus();
      });
  // Loaded by the leader, beside the lease: others may have renewed it, and it may take its time.
  manager.AddWorker("jobs", [&](std::stop_token stop) {
    kube::Client until_stop = client.Until(stop);
    const auto load_identity = [&] {
      return LoadOperatorIdentity(until_stop, clock,
                                  {options.operator_namespace, options.identity_secret});
    };
    IdentityRenewal renewal(clock, {.load = load_identity,
                                    .renewed = [&](const auto& now) { jobs.UseCertificate(now); },
                                    .replaced = [&] { end.request_stop(); }});
    const absl::StatusOr<reconcile::OperatorIdentity> identity =
        AwaitOperatorIdentity(load_identity, clock, stop);
    if (!identity.ok()) {
      if (!stop.stop_requested())
        log::Error("no identity", {{"error", identity.status().message()}});
      return;
    }
    const std::jthread renewing([&](std::stop_token end_of_jobs) {
      base::SetThreadName("identity renewal");
      renewal.Run(*identity, std::move(end_of_jobs));
    });
    jobs.Run(view.stores(), *identity, stop);
  });
  metrics::HttpEndpoint http(registry);
  http.SetReadiness([&] { return manager.Ready(); });
  HETERO_RETURN_IF_ERROR(http.Start(options.metrics_address, options.metrics_port));
  metrics::HttpEndpoint probes;
  probes.SetReadiness([&] { return manager.Ready(); });
  HETERO_RETURN_IF_ERROR(probes.Start(options.probes_address, options.probes_port));
  jobs_page::JobsPort page(*view.stores().jobs, clock, [&] { return manager.Ready().ok(); });
  ShowJobs(options, page);
  const std::jthread memory([&](std::stop_token stop) { KeepMemorySmall(clock, std::move(stop)); });

  const absl::Status status = manager.Start(end.get_token());
  if (!status.ok()) {
    // Parts may still be running; after a lost lease nothing may be written any more.
    log::Error("ending", {{"error", status.message()}});
    std::_Exit(EXIT_FAILURE);
  }
  log::Info("stopped");
  return absl::OkStatus();
}

}  // namespace
}  // namespace hetero::program

int main(int argc, char** argv) {
  using namespace hetero;
  program::LimitMemory();
  kube::KeepSystemAuthoritiesFromCpprest();
  base::SignalStop signals;
  program::OperatorOptions options;
  if (const auto code = program::ParseOptions(argc, argv, std::cout, std::cerr, options)) {
    return *code;
  }
  base::SendGrpcLogToOurs(base::GrpcLines::kOfClient);
  base::KeepGrpcInitialized();
  log::Init("operator", options.log_level);
  const absl::Status status = program::Run(std::move(options), signals.first());
  if (status.ok()) return EXIT_SUCCESS;
  log::Error("cannot start", {{"error", status.message()}});
  return EXIT_FAILURE;
}
