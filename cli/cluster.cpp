#include "cli/cluster.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/job_resource.h"
#include "api/suggest.h"
#include "operator/kube/api_error.h"
#include "operator/kube/cluster_access.h"
#include "operator/kube/rest_transport.h"

namespace hetero::cli {

namespace {

constexpr base::Duration kAside = std::chrono::seconds(5);
constexpr int kNamesToCompare = 500;

}  // namespace

const kube::Resource kJobs{api::kGroup, api::kVersion, api::kPlural};

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Connect(const Options& options,
                                                          base::Clock& clock) {
  auto access = kube::DefaultAccess(clock, options.kubeconfig, options.context);
  if (!access.ok()) {
    return absl::Status(access.status().code(),
                        absl::StrCat("cannot tell which cluster to talk to: ",
                                     std::string(access.status().message())));
  }
  auto cluster = std::make_unique<Cluster>();
  cluster->name_space_ = options.name_space.empty() ? access->name_space : options.name_space;
  access->act_as = options.act_as;
  auto transport = kube::MakeRestTransport(*std::move(access));
  if (!transport.ok()) return transport.status();
  cluster->transport_ = *std::move(transport);
  kube::Client::Options client_options;
  client_options.user_agent = "kubectl-hetero";
  client_options.timeout = options.request_timeout;
  cluster->timeout_ = options.request_timeout;
  cluster->client_ = std::make_unique<kube::Client>(*cluster->transport_, clock, cluster->registry_,
                                                    client_options);
  client_options.timeout = std::min<base::Duration>(client_options.timeout, kAside);
  cluster->aside_ = std::make_unique<kube::Client>(*cluster->transport_, clock, cluster->registry_,
                                                   client_options);
  return cluster;
}

absl::StatusOr<nlohmann::json> Cluster::Job(const std::string& name) {
  const kube::ObjectKey key{name_space_, name};
  auto object = client_->Get(kJobs, key);
  if (object.ok()) return object;
  const absl::Status explained = Explain(object.status(), "get", key);
  const std::string nearest = absl::IsNotFound(explained) ? Nearest(name) : "";
  if (nearest.empty()) return explained;
  return absl::NotFoundError(
      absl::StrCat(std::string(explained.message()), ". Did you mean ", nearest, "?"));
}

std::string Cluster::Nearest(const std::string& name) {
  const auto jobs = aside_->List(kJobs, name_space_, {.limit = kNamesToCompare});
  if (!jobs.ok()) return "";
  std::vector<std::string> names;
  for (const nlohmann::json& job : jobs->items) names.push_back(kube::ObjectKey::Of(job).name);
  return api::Nearest(name, names);
}

absl::Status Cluster::DryRun(const kube::ObjectKey& job, const std::string& manifest) {
  kube::Request request;
  request.method = "POST";
  request.path =
      absl::StrCat("/apis/", kJobs.group, "/", kJobs.version, "/namespaces/", job.name_space, "/",
                   kJobs.plural, "?dryRun=All&fieldValidation=Strict");
  request.body = manifest;
  request.content_type = "application/yaml";
  request.user_agent = "kubectl-hetero";
  const std::string call = request.method + " " + request.path;
  const auto response = transport_->Send(request, timeout_);
  if (!response.ok()) return Explain(response.status(), "create", job);
  if (response->status < 300) return absl::OkStatus();
  const absl::Status refused = kube::ErrorOfResponse(call, *response);
  return absl::IsAlreadyExists(refused) ? absl::OkStatus() : Explain(refused, "create", job);
}

}  // namespace hetero::cli
