#include "cli/cluster.h"

#include "absl/strings/str_cat.h"
#include "operator/kube/cluster_access.h"
#include "operator/kube/rest_transport.h"

namespace hetero::cli {

const kube::Resource kJobs{"training.hetero.dev", "v1alpha1", "heterotrainingjobs"};

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Connect(const Options& options,
                                                          base::Clock& clock) {
  auto access = kube::DefaultAccess(clock, options.kubeconfig, options.context);
  if (!access.ok()) return access.status();
  auto cluster = std::make_unique<Cluster>();
  cluster->name_space_ = options.name_space.empty() ? access->name_space : options.name_space;
  auto transport = kube::MakeRestTransport(*std::move(access));
  if (!transport.ok()) return transport.status();
  cluster->transport_ = *std::move(transport);
  kube::Client::Options client_options;
  client_options.user_agent = "kubectl-hetero";
  cluster->client_ = std::make_unique<kube::Client>(*cluster->transport_, clock, cluster->registry_,
                                                    client_options);
  return cluster;
}

absl::StatusOr<nlohmann::json> Cluster::Job(const std::string& name) {
  const kube::ObjectKey key{name_space_, name};
  auto object = client_->Get(kJobs, key);
  if (!object.ok()) return Explain(object.status(), "get", key);
  return object;
}

absl::Status Cluster::DryRun(const std::string& name_space, const std::string& manifest) {
  kube::Request request;
  request.method = "POST";
  request.path = absl::StrCat("/apis/", kJobs.group, "/", kJobs.version, "/namespaces/", name_space,
                              "/", kJobs.plural, "?dryRun=All&fieldValidation=Strict");
  request.body = manifest;
  request.content_type = "application/yaml";
  const auto response = transport_->Send(request, std::chrono::seconds(30));
  if (!response.ok()) return response.status();
  if (response->status < 300 || response->status == 409) return absl::OkStatus();
  const auto reply = nlohmann::json::parse(response->body, nullptr, false);
  if (reply.is_object() && reply.contains("message") && reply["message"].is_string()) {
    return absl::InvalidArgumentError(reply["message"].get<std::string>());
  }
  return absl::UnknownError(absl::StrCat("HTTP status ", response->status));
}

absl::Status Explain(const absl::Status& status, const std::string& verb,
                     const kube::ObjectKey& job) {
  std::string remedy;
  if (absl::IsNotFound(status)) {
    remedy = absl::StrCat("; see kubectl get heterotrainingjobs -n ", job.name_space,
                          ", or name another namespace with -n");
  } else if (absl::IsPermissionDenied(status)) {
    remedy = absl::StrCat("; ask for the right to ", verb, " heterotrainingjobs in namespace ",
                          job.name_space);
  } else if (absl::IsUnauthenticated(status)) {
    remedy = "; see whether your kubeconfig's credentials have expired";
  }
  return absl::Status(status.code(),
                      absl::StrCat("cannot ", verb, " heterotrainingjob ", job.ToString(), ": ",
                                   std::string(status.message()), remedy));
}

}  // namespace hetero::cli
