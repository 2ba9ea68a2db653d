#include "operator/reconcile/effects.h"

#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "api/job_resource.h"
#include "operator/children/names.h"
#include "operator/reconcile/json_access.h"
#include "operator/reconcile/project.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;
using plan::CreateError;
using plan::Effect;

// Quota, admission and foreign objects change by somebody's hand, not within milliseconds.
constexpr base::Duration kRefusedAgain = std::chrono::seconds(15);
constexpr base::Duration kNameTakenAgain = std::chrono::seconds(5);
constexpr base::Duration kOwnGoingAgain = std::chrono::seconds(1);
constexpr base::Duration kForeignGoingAgain = std::chrono::seconds(2);

const kube::Resource& ResourceOf(Effect::Resource resource) {
  switch (resource) {
    case Effect::Resource::kPod:
      return kube::kPods;
    case Effect::Resource::kService:
      return kube::kServices;
    case Effect::Resource::kConfigMap:
      return kube::kConfigMaps;
    case Effect::Resource::kNetworkPolicy:
      return kube::kNetworkPolicies;
  }
  return kube::kPods;
}

const char* KindOf(Effect::Resource resource) {
  switch (resource) {
    case Effect::Resource::kPod:
      return "pod";
    case Effect::Resource::kService:
      return "service";
    case Effect::Resource::kConfigMap:
      return "configmap";
    case Effect::Resource::kNetworkPolicy:
      return "networkpolicy";
  }
  return "";
}

bool IsDeleting(const json& object) {
  return !FieldOf(FieldOf(object, "metadata"), "deletionTimestamp").is_null();
}

Outcome Created(Effect::Resource resource, const json& object) {
  Outcome outcome;
  if (resource == Effect::Resource::kPod) {
    outcome.pod = ProjectPod(object);
  } else {
    outcome.object = ProjectObject(object);
  }
  return outcome;
}

Outcome NameConflict(const std::string& what, const std::string& holder) {
  Outcome outcome;
  outcome.create_error = {.kind = CreateError::Kind::kNameConflict,
                          .message = absl::StrCat(what, " exists and belongs to ", holder,
                                                  "; delete that, or give this job another name")};
  outcome.again_after = kNameTakenAgain;
  return outcome;
}

Outcome AgainAfter(base::Duration wait) {
  Outcome outcome;
  outcome.again_after = wait;
  return outcome;
}

bool NamespaceGoes(const absl::Status& status) {
  const bool terminating = absl::IsPermissionDenied(status) &&
                           absl::StrContains(status.message(), "because it is being terminated");
  return terminating || absl::IsNotFound(status);
}

}  // namespace

Outcome RefusedCreate(const std::string& what, const absl::Status& status) {
  Outcome outcome;
  if (NamespaceGoes(status)) {
    outcome.given_up = true;
    return outcome;
  }
  const std::string message = absl::StrCat(what, ": ", status.message());
  if (kube::IsQuotaExceeded(status)) {
    outcome.create_error = {.kind = CreateError::Kind::kQuotaExceeded, .message = message};
    outcome.again_after = kRefusedAgain;
  } else if (absl::IsInvalidArgument(status) || absl::IsPermissionDenied(status)) {
    outcome.create_error = {.kind = CreateError::Kind::kOther, .message = message};
    outcome.again_after = kRefusedAgain;
  } else {
    outcome.status = absl::Status(status.code(), message);
  }
  return outcome;
}

EffectRunner::EffectRunner(kube::Client& client, base::Clock& clock, const Stores& stores,
                           Heads& heads, const OperatorIdentity& identity, int parallelism)
    : client_(client),
      clock_(clock),
      stores_(stores),
      heads_(heads),
      identity_(identity),
      pool_(parallelism) {}

std::vector<Outcome> EffectRunner::RunStage(const std::vector<Effect>& stage,
                                            const plan::ObservedJob& job, std::stop_token stop) {
  std::vector<Outcome> outcomes(stage.size());
  std::vector<std::function<void()>> calls;
  for (size_t i = 0; i < stage.size(); ++i) {
    calls.emplace_back([this, &job, &stop, &effect = stage[i], &outcome = outcomes[i]] {
      if (stop.stop_requested()) {
        outcome.given_up = true;
      } else {
        outcome = RunOne(effect, job);
      }
    });
  }
  if (!calls.empty()) pool_.Run(std::move(calls));
  return outcomes;
}

Outcome EffectRunner::RunOne(const Effect& effect, const plan::ObservedJob& job) {
  const api::Metadata& metadata = job.job.metadata;
  switch (effect.kind) {
    case Effect::Kind::kCreate:
      return Create(effect.resource, effect.object, job);
    case Effect::Kind::kCreateTrust:
      return CreateTrust(job);
    case Effect::Kind::kDelete:
      return Delete(ResourceOf(effect.resource), effect, job);
    case Effect::Kind::kDeleteSecret: {
      Effect secret = effect;
      secret.name = children::SecretName(metadata);
      return Delete(kube::kSecrets, secret, job);
    }
    case Effect::Kind::kDeleteJob: {
      Effect own = effect;
      own.name = metadata.name;
      own.uid = metadata.uid;
      Outcome outcome = Delete(kHeteroTrainingJobs, own, job);
      outcome.job_deleted = outcome.ok();
      return outcome;
    }
    case Effect::Kind::kDeletePods: {
      Outcome outcome;
      outcome.status = client_.DeleteCollection(kube::kPods, metadata.name_space,
                                                children::JobSelector(metadata),
                                                {.grace_period_seconds = effect.grace_seconds});
      outcome.pods_deleted = outcome.status.ok();
      return outcome;
    }
    case Effect::Kind::kReportExit:
      heads_.ReportExit(kube::ObjectKey{metadata.name_space, metadata.name}.ToString(), effect);
      return {};
  }
  return {};
}

Outcome EffectRunner::Delete(const kube::Resource& resource, const Effect& effect,
                             const plan::ObservedJob& job) {
  const absl::Status status =
      client_.Delete(resource, {job.job.metadata.name_space, effect.name},
                     {.grace_period_seconds = effect.grace_seconds, .uid = effect.uid});
  Outcome outcome;
  // A refused uid means that another object has the name: the one that was meant is gone.
  const bool gone = absl::IsNotFound(status) || (absl::IsAborted(status) && !effect.uid.empty());
  if (!status.ok() && !gone) {
    outcome.status = absl::Status(
        status.code(), absl::StrCat(resource.plural, " ", effect.name, ": ", status.message()));
    return outcome;
  }
  outcome.deleted_uid = effect.uid;
  outcome.grace_seconds = gone ? 0 : effect.grace_seconds;
  return outcome;
}

Outcome EffectRunner::Create(Effect::Resource resource, const json& object,
                             const plan::ObservedJob& job) {
  const std::string& name_space = job.job.metadata.name_space;
  const absl::StatusOr<json> created = client_.Create(ResourceOf(resource), name_space, object);
  if (created.ok()) return Created(resource, *created);
  const std::string name = TextOf(FieldOf(object, "metadata"), "name");
  if (absl::IsAlreadyExists(created.status())) {
    return SettleExisting(resource, {name_space, name}, job);
  }
  return RefusedCreate(absl::StrCat(KindOf(resource), " ", name), created.status());
}

Outcome EffectRunner::SettleExisting(Effect::Resource resource, const kube::ObjectKey& key,
                                     const plan::ObservedJob& job) {
  const std::string what = absl::StrCat(KindOf(resource), " ", key.name);
  const absl::StatusOr<json> existing = client_.Get(ResourceOf(resource), key);
  if (absl::IsNotFound(existing.status())) return AgainAfter(kOwnGoingAgain);
  if (!existing.ok()) {
    Outcome outcome;
    outcome.status = existing.status();
    return outcome;
  }
  if (TextOf(ControllerOf(*existing), "uid") != job.job.metadata.uid) {
    return SettleForeign(what, *existing, key.name_space);
  }
  return IsDeleting(*existing) ? AgainAfter(kOwnGoingAgain) : Created(resource, *existing);
}

Outcome EffectRunner::SettleForeign(const std::string& what, const json& existing,
                                    const std::string& name_space) {
  if (IsDeleting(existing)) return AgainAfter(kForeignGoingAgain);
  const json& owner = ControllerOf(existing);
  if (owner.is_null()) return NameConflict(what, "no job");
  const std::string kind = TextOf(owner, "kind");
  const std::string name = TextOf(owner, "name");
  const std::string holder = absl::StrCat(kind, " ", name);
  if (kind != api::kKind) return NameConflict(what, holder);
  const auto other = stores_.jobs->Get({name_space, name});
  const bool lives =
      other != nullptr && other->job.metadata.uid == TextOf(owner, "uid") && !other->deleting;
  // Else the garbage collector is about to remove it.
  return lives ? NameConflict(what, holder) : AgainAfter(kForeignGoingAgain);
}

}  // namespace hetero::reconcile
