#include <utility>

#include "absl/strings/str_cat.h"
#include "operator/children/children.h"
#include "operator/children/names.h"
#include "operator/reconcile/effects.h"
#include "operator/reconcile/ownership.h"
#include "operator/reconcile/project.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;

Outcome Failed(absl::Status status) {
  Outcome outcome;
  outcome.status = std::move(status);
  return outcome;
}

}  // namespace

// The ConfigMap carries the certificate of the authority that signed the leaves in the Secret, so
// it comes second: where it is, the pair is complete.
Outcome EffectRunner::Run(const plan::CreateTrust&, const plan::ObservedJob& job) {
  constexpr auto kConfigMap = plan::ChildKind::kConfigMap;
  if (job.job.spec.network.tls == api::Switch::kDisabled) {
    return Create(kConfigMap, children::ConfigMap(job.job, settings_, "", ""), job);
  }
  const absl::StatusOr<JobTrust> trust = IssueJobTrust(job.job.metadata.uid, clock_.WallNow());
  if (!trust.ok()) return Failed(trust.status());
  if (std::optional<Outcome> ended = CreateSecret(*trust, job)) return *std::move(ended);

  const json object = children::ConfigMap(job.job, settings_, trust->ca_pem, identity_.ca_pem);
  Outcome outcome = Create(kConfigMap, object, job);
  if (outcome.object != nullptr && outcome.object->ca_pem != trust->ca_pem) {
    return ReplaceConfigMap(outcome.object->uid, object, job);
  }
  return outcome;
}

// None when the Secret has been created and the ConfigMap is to follow.
std::optional<Outcome> EffectRunner::CreateSecret(const JobTrust& trust,
                                                  const plan::ObservedJob& job) {
  const api::Metadata& metadata = job.job.metadata;
  const json secret = children::TlsSecret(job.job, trust.head, trust.cpu_worker, trust.gpu_worker);
  const std::string name = children::SecretName(metadata);
  absl::Status status = client_.Create(kube::kSecrets, metadata.name_space, secret).status();
  if (absl::IsAlreadyExists(status)) {
    // Either the store is late and the pair is complete, or a pass was cut off half-way and the
    // authority of that Secret is lost: secrets are never read, so it is made again.
    const absl::StatusOr<json> config_map =
        client_.Get(kube::kConfigMaps, {metadata.name_space, children::ConfigMapName(metadata)});
    if (!config_map.ok() && !absl::IsNotFound(config_map.status())) {
      return Failed(config_map.status());
    }
    if (config_map.ok() && IsOwnedBy(*config_map, metadata.uid)) {
      Outcome complete;
      complete.object = ProjectObject(*config_map);
      complete.kind = plan::ChildKind::kConfigMap;
      if (complete.object->deleting) complete.again_after = std::chrono::seconds(1);
      return complete;
    }
    const absl::Status deleted = client_.Delete(kube::kSecrets, {metadata.name_space, name}, {});
    if (!deleted.ok() && !absl::IsNotFound(deleted)) return Failed(deleted);
    status = client_.Create(kube::kSecrets, metadata.name_space, secret).status();
  }
  if (!status.ok()) return RefusedCreate(absl::StrCat("secret ", name), status);
  return std::nullopt;
}

// The job's ConfigMap proves an authority whose Secret was taken away.
Outcome EffectRunner::ReplaceConfigMap(const std::string& uid, const json& object,
                                       const plan::ObservedJob& job) {
  const api::Metadata& metadata = job.job.metadata;
  const Outcome deleted = Delete(
      kube::kConfigMaps, {metadata.name_space, children::ConfigMapName(metadata)}, {.uid = uid});
  if (!deleted.ok()) return deleted;
  return Create(plan::ChildKind::kConfigMap, object, job);
}

}  // namespace hetero::reconcile
