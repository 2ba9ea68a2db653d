#include <CLI/CLI.hpp>
#include <thread>
#include <vector>

#include "api/job_resource.h"
#include "api/labels.h"
#include "base/grpc_lifetime.h"
#include "base/http_endpoint.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/thread.h"
#include "operator/kube/cluster_access.h"
#include "operator/kube/informer.h"
#include "operator/kube/rest_transport.h"
#include "tests/fakes/head/director.h"

namespace hetero::testing {
namespace {

const kube::Resource kJobs{api::kGroup, api::kVersion, api::kPlural, true};

absl::Status Run(const std::string& kubeconfig, const std::string& listen, std::stop_token stop) {
  base::Clock& clock = base::Clock::Real();
  auto access = kube::DefaultAccess(clock, kubeconfig);
  if (!access.ok()) return access.status();
  auto transport = kube::MakeRestTransport(*std::move(access));
  if (!transport.ok()) return transport.status();
  metrics::Registry registry;
  kube::Client client(**transport, clock, registry,
                      {.qps = 2000, .burst = 4000, .user_agent = "hetero-fake-head"});
  Director director(client, clock);

  kube::Informer<JobView> jobs(
      client, clock, registry, {.resource = kJobs},
      [](const nlohmann::json& object, const auto&) { return ViewJob(object); },
      [&](const auto& key, const auto& before, const auto& now) {
        director.OnJob(key, before, now);
      });
  kube::Informer<PodView> pods(
      client, clock, registry, {.resource = kube::kPods, .label_selector = api::kChildSelector},
      [](const nlohmann::json& object, const auto&) { return ViewPod(object); },
      [&](const auto&, const auto& before, const auto& now) { director.OnPod(before, now); });
  kube::Informer<ServiceView> services(
      client, clock, registry, {.resource = kube::kServices, .label_selector = api::kChildSelector},
      [](const nlohmann::json& object, const auto&) { return ViewService(object); },
      [&](const auto&, const auto& before, const auto& now) { director.OnService(before, now); });

  metrics::HttpEndpoint endpoint(registry);
  endpoint.Handle("/jobs", [&](const metrics::HttpRequest&) {
    return metrics::HttpResponse{.content_type = "application/json",
                                 .body = director.Jobs().dump()};
  });
  const size_t colon = listen.rfind(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError("--listen " + listen + " is not ADDRESS:PORT");
  }
  const absl::Status started =
      endpoint.Start(listen.substr(0, colon), std::atoi(listen.c_str() + colon + 1));
  if (!started.ok()) return started;
  std::vector<std::jthread> watchers;
  watchers.emplace_back([&] { jobs.Run(stop); });
  watchers.emplace_back([&] { pods.Run(stop); });
  watchers.emplace_back([&] { services.Run(stop); });
  watchers.clear();  // joins
  endpoint.Stop();
  return absl::OkStatus();
}

}  // namespace
}  // namespace hetero::testing

// Plays the heads of all jobs of a cluster, for tests.
int main(int argc, char** argv) {
  hetero::base::SignalStop signals;
  hetero::base::KeepGrpcInitialized();
  hetero::log::Init("fake-head");
  std::string kubeconfig;
  std::string listen = "127.0.0.1:7000";
  CLI::App app("Plays the heads of all jobs of a cluster, for tests: see tests/cluster/README.md");
  app.add_option("--kubeconfig", kubeconfig, "as kubectl finds it when absent");
  app.add_option("--listen", listen, "address and port of GET /jobs");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = hetero::testing::Run(kubeconfig, listen, signals.first());
  if (!status.ok()) {
    hetero::log::Error("cannot go on", {{"error", status.message()}});
    return 1;
  }
  return 0;
}
