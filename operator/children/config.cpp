#include "api/manifest.h"
#include "api/storage_defaults.h"
#include "operator/children/children.h"
#include "operator/children/names.h"
#include "operator/children/object_metadata.h"
#include "operator/children/role_type.h"

namespace hetero::children {
namespace {

using nlohmann::json;

// What the processes of a job do not read stays out: templates may hold what only their own
// containers should see, and annotations repeat the whole manifest after `kubectl apply`.
std::string JobDocument(api::HeteroTrainingJob job, const Settings& settings) {
  job.metadata.labels.clear();
  job.metadata.annotations.clear();
  for (api::Role& role : job.spec.roles) role.pod_template.clear();
  api::AddStorageDefaults(settings.storage_defaults, job.spec.storage);
  json document = json::parse(api::ToJson(job), nullptr, /*allow_exceptions=*/false);
  // The programs of 0.1.1 read this after a rollback and refuse fields that they do not know.
  json& policy = document["spec"]["runPolicy"];
  if (policy["stopGraceSeconds"] == api::RunPolicy().stop_grace_seconds) {
    policy.erase("stopGraceSeconds");
  }
  // Nor do those that lack these fields need them.
  for (const char* field : {"maxWaitSeconds", "maxDollars"}) policy.erase(field);
  for (json& role : document["spec"]["roles"]) role.erase("capacity");
  for (const char* field : {"managedBy", "placement"}) document["spec"].erase(field);
  json& scheduling = document["spec"]["scheduling"];
  if (scheduling.is_object()) {
    for (const char* field : {"gang", "queue"}) scheduling.erase(field);
  }
  if (scheduling.empty()) document["spec"].erase("scheduling");
  return document.dump();
}

}  // namespace

json ConfigMap(const api::HeteroTrainingJob& job, const Settings& settings,
               const std::string& job_ca_pem, const std::string& operator_ca_pem) {
  json data = {{"job.json", JobDocument(job, settings)}};
  if (!job_ca_pem.empty()) data["ca.crt"] = job_ca_pem;
  if (!operator_ca_pem.empty()) data["operator-ca.crt"] = operator_ca_pem;
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", ObjectMetadata(job, ConfigMapName(job.metadata))},
          {"data", std::move(data)}};
}

json TlsSecret(const api::HeteroTrainingJob& job, const Leaf& head, const Leaf& cpu_worker,
               const Leaf& gpu_worker) {
  json data = json::object();
  const auto add = [&data](api::RoleType type, const Leaf& leaf) {
    data[CertificateKey(type)] = leaf.certificate_pem;
    data[PrivateKeyKey(type)] = leaf.key_pem;
  };
  add(api::RoleType::kHead, head);
  add(api::RoleType::kCpuWorker, cpu_worker);
  add(api::RoleType::kGpuWorker, gpu_worker);
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"type", "Opaque"},
          {"immutable", true},
          {"metadata", ObjectMetadata(job, SecretName(job.metadata))},
          {"stringData", std::move(data)}};
}

}  // namespace hetero::children
