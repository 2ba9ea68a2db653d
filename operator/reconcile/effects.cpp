#include "operator/reconcile/effects.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "api/job_resource.h"
#include "api/labels.h"
#include "base/log.h"
#include "operator/children/children.h"
#include "operator/children/names.h"
#include "operator/reconcile/job_resource.h"
#include "operator/reconcile/json_access.h"
#include "operator/reconcile/ownership.h"
#include "operator/reconcile/project.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;
using plan::ChildKind;
using plan::CreateError;

// Quota, admission and foreign objects change by somebody's hand, not within milliseconds.
constexpr base::Duration kRefusedAgain = std::chrono::seconds(15);
constexpr base::Duration kNameTakenAgain = std::chrono::seconds(5);
constexpr base::Duration kOwnGoingAgain = std::chrono::seconds(1);
constexpr base::Duration kForeignGoingAgain = std::chrono::seconds(2);

kube::Resource ResourceOf(ChildKind kind, children::GangApi gang_api = {}) {
  switch (kind) {
    case ChildKind::kPod:
      return kube::kPods;
    case ChildKind::kService:
      return kube::kServices;
    case ChildKind::kConfigMap:
      return kube::kConfigMaps;
    case ChildKind::kNetworkPolicy:
      return kube::kNetworkPolicies;
    case ChildKind::kWorkload:
      return kWorkloads;
    case ChildKind::kPodGroup:
      return PodGroupsOf(gang_api);
  }
  return kube::kPods;
}

const char* NameOf(ChildKind kind) {
  switch (kind) {
    case ChildKind::kPod:
      return "pod";
    case ChildKind::kService:
      return "service";
    case ChildKind::kConfigMap:
      return "configmap";
    case ChildKind::kNetworkPolicy:
      return "networkpolicy";
    case ChildKind::kWorkload:
      return "workload";
    case ChildKind::kPodGroup:
      return "podgroup";
  }
  return "";
}

// What its author can do about a pod that the namespace does not admit as it is; "" when the API's
// own words are all there is to say. They look like a missing right ("is forbidden") otherwise.
std::string RemedyFor(absl::string_view refusal) {
  const auto says = [refusal](absl::string_view words) {
    return absl::StrContains(refusal, words);
  };
  if (says("failed quota") && says("must specify")) {
    return "; a ResourceQuota wants every container to say these: set them in the resources of the "
           "role's template, or let a LimitRange of the namespace give defaults";
  }
  if (says(" usage per ") || says(" limit to request ratio per ")) {
    return "; a LimitRange of the namespace says so: set the resources of the role's template "
           "within it";
  }
  if (says("must be less than or equal to") && says(" limit of ")) {
    return "; a limit that the role's template does not set is a LimitRange's default: set "
           "requests and limits in the template, both";
  }
  return "";
}

// By kChildSelector.
bool IsWatched(const json& object) {
  return TextOf(FieldOf(FieldOf(object, "metadata"), "labels"), api::kManagedByLabel) ==
         api::kManagedByValue;
}

bool IsDeleting(const json& object) {
  return !FieldOf(FieldOf(object, "metadata"), "deletionTimestamp").is_null();
}

Outcome Created(ChildKind kind, const json& object) {
  Outcome outcome;
  outcome.kind = kind;
  if (kind == ChildKind::kPod) {
    outcome.pod = ProjectPod(object);
  } else if (kind == ChildKind::kWorkload) {
    outcome.workload = ProjectWorkload(object);
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
  // Other things may be missing too, which somebody then has to hear of.
  return absl::IsPermissionDenied(status)
             ? absl::StrContains(status.message(), "because it is being terminated")
             : absl::IsNotFound(status) && absl::StrContains(status.message(), "namespaces \"");
}

// Of the API; the others only hand something to a head's stream.
bool IsCall(const plan::Effect& effect) {
  return !std::holds_alternative<plan::ReportExit>(effect) &&
         !std::holds_alternative<plan::StopHead>(effect) &&
         !std::holds_alternative<plan::WarnHead>(effect);
}

}  // namespace

bool NobodyAnswers(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status);
}

json RenderPod(const plan::CreatePod& effect, const api::HeteroTrainingJob& job,
               const children::Settings& settings) {
  children::PodSlot slot;
  slot.role = &job.spec.roles.at(effect.role);
  slot.index = effect.index;
  slot.attempt = effect.origin->attempt;
  slot.incarnation = effect.origin->incarnation;
  slot.head_address = effect.origin->head_address;
  const bool trains = slot.role->type == api::RoleType::kGpuWorker;
  slot.image = trains ? effect.origin->images.trainer : effect.origin->images.runtime;
  slot.install_image = effect.origin->images.runtime;
  slot.avoided_nodes = effect.origin->avoided_nodes;
  slot.placement = effect.placement.get();
  if (effect.origin->gang) slot.gang = &*effect.origin->gang;
  if (slot.role->type == api::RoleType::kHead) {
    slot.job_created = effect.origin->job_created;
    slot.history = effect.origin->history;
    slot.attempt_cause = effect.origin->attempt_cause;
  }
  return children::Pod(job, slot, settings);
}

Outcome RefusedCreate(const std::string& what, const absl::Status& status) {
  Outcome outcome;
  if (NamespaceGoes(status)) {
    outcome.given_up = true;
    return outcome;
  }
  const std::string message =
      absl::StrCat(what, ": ", status.message(), RemedyFor(status.message()));
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

EffectRunner::EffectRunner(kube::Client& client, base::Clock& clock,
                           const kube::Store<plan::ObservedJob>& jobs, Heads& heads,
                           const OperatorIdentity& identity, const children::Settings& settings,
                           int parallelism)
    : client_(client),
      clock_(clock),
      jobs_(jobs),
      heads_(heads),
      identity_(identity),
      settings_(settings),
      pool_(clock, {.most = static_cast<size_t>(std::max(1, parallelism))}) {}

std::vector<Outcome> EffectRunner::RunTogether(std::span<const plan::Effect> effects,
                                               const plan::ObservedJob& job, FullRoles& full,
                                               std::stop_token stop) {
  std::vector<Outcome> outcomes(effects.size());
  const base::Instant last_call = clock_.Now() + kLongestStage;
  std::atomic<bool> unanswered = false;
  const auto full_for = [&full](const plan::Effect& effect) -> std::atomic<bool>* {
    const auto* pod = std::get_if<plan::CreatePod>(&effect);
    return pod == nullptr || pod->role >= full.size() ? nullptr : &full[pod->role];
  };
  pool_.Run(effects.size(), [&](size_t i) {
    std::atomic<bool>* const hopeless = full_for(effects[i]);
    if (stop.stop_requested()) {
      outcomes[i].given_up = true;
    } else if (hopeless != nullptr && *hopeless) {
      outcomes[i].hopeless = true;
    } else if (IsCall(effects[i]) && (unanswered || clock_.Now() > last_call)) {
      outcomes[i].put_off = true;
    } else {
      outcomes[i] = RunGuarded(effects[i], job);
      if (NobodyAnswers(outcomes[i].status)) unanswered = true;
      const std::optional<CreateError>& refused = outcomes[i].create_error;
      if (hopeless != nullptr && refused && refused->kind == CreateError::Kind::kQuotaExceeded) {
        *hopeless = true;
      }
    }
  });
  return outcomes;
}

// An exception is a bug of this one effect; it may not leave a thread of the pool.
Outcome EffectRunner::RunGuarded(const plan::Effect& effect, const plan::ObservedJob& job) {
  try {
    return std::visit([&](const auto& one) { return Run(one, job); }, effect);
  } catch (const std::exception& error) {
    Outcome outcome;
    outcome.status = absl::InternalError(
        absl::StrCat("bug, please report it: an exception left an effect: ", error.what()));
    return outcome;
  }
}

Outcome EffectRunner::Run(const plan::CreateChild& effect, const plan::ObservedJob& job) {
  switch (effect.kind) {
    case ChildKind::kService:
      return Create(effect.kind, children::HeadService(job.job), job);
    case ChildKind::kNetworkPolicy:
      return Create(effect.kind, children::NetworkPolicy(job.job, settings_), job);
    case ChildKind::kPod:        // CreatePod
    case ChildKind::kConfigMap:  // CreateTrust
    case ChildKind::kWorkload:   // CreateWorkload
    case ChildKind::kPodGroup:   // CreatePodGroup
      break;
  }
  Outcome outcome;
  outcome.status = absl::InternalError("only Service and NetworkPolicy are created by name");
  return outcome;
}

Outcome EffectRunner::Run(const plan::CreatePod& effect, const plan::ObservedJob& job) {
  return Create(ChildKind::kPod, RenderPod(effect, job.job, settings_), job);
}

Outcome EffectRunner::Run(const plan::DeleteChild& effect, const plan::ObservedJob& job) {
  return Delete(ResourceOf(effect.kind, effect.gang_api),
                {job.job.metadata.name_space, effect.name},
                {.grace_period_seconds = effect.grace_seconds, .uid = effect.uid});
}

Outcome EffectRunner::Run(const plan::DeletePods&, const plan::ObservedJob& job) {
  const api::Metadata& metadata = job.job.metadata;
  Outcome outcome;
  outcome.status = client_.DeleteCollection(kube::kPods, metadata.name_space,
                                            children::JobSelector(metadata), {});
  outcome.pods_deleted = outcome.status.ok();
  return outcome;
}

Outcome EffectRunner::Run(const plan::DeleteSecret&, const plan::ObservedJob& job) {
  const api::Metadata& metadata = job.job.metadata;
  return Delete(kube::kSecrets, {metadata.name_space, children::SecretName(metadata)}, {});
}

Outcome EffectRunner::Run(const plan::DeleteJob&, const plan::ObservedJob& job) {
  const api::Metadata& metadata = job.job.metadata;
  Outcome outcome =
      Delete(kHeteroTrainingJobs, {metadata.name_space, metadata.name}, {.uid = metadata.uid});
  outcome.job_deleted = outcome.ok();
  return outcome;
}

Outcome EffectRunner::Run(const plan::ReportExit& effect, const plan::ObservedJob& job) {
  const api::Metadata& metadata = job.job.metadata;
  heads_.ReportExit(kube::ObjectKey{metadata.name_space, metadata.name}.ToString(), effect);
  return {};
}

Outcome EffectRunner::Run(const plan::StopHead& effect, const plan::ObservedJob& job) {
  const api::Metadata& metadata = job.job.metadata;
  heads_.Stop(kube::ObjectKey{metadata.name_space, metadata.name}.ToString(), effect);
  return {};
}

Outcome EffectRunner::Run(const plan::WarnHead& effect, const plan::ObservedJob& job) {
  const api::Metadata& metadata = job.job.metadata;
  heads_.Warn(kube::ObjectKey{metadata.name_space, metadata.name}.ToString(), effect);
  return {};
}

Outcome EffectRunner::Delete(const kube::Resource& resource, const kube::ObjectKey& key,
                             const kube::DeleteOptions& options) {
  const absl::Status status = client_.Delete(resource, key, options);
  Outcome outcome;
  // A refused uid means that another object has the name: the one that was meant is gone.
  const bool gone = absl::IsNotFound(status) || (absl::IsAborted(status) && !options.uid.empty());
  if (!status.ok() && !gone) {
    outcome.status = absl::Status(
        status.code(), absl::StrCat(resource.plural, " ", key.name, ": ", status.message()));
    return outcome;
  }
  outcome.deleted_uid = options.uid;
  outcome.grace_seconds = gone ? 0 : options.grace_period_seconds;
  return outcome;
}

Outcome EffectRunner::Create(ChildKind kind, const json& object, const plan::ObservedJob& job) {
  return Create(kind, ResourceOf(kind), object, job);
}

Outcome EffectRunner::Create(ChildKind kind, const kube::Resource& resource, const json& object,
                             const plan::ObservedJob& job) {
  const std::string& name_space = job.job.metadata.name_space;
  const absl::StatusOr<json> created = client_.Create(resource, name_space, object);
  if (created.ok()) return Created(kind, *created);
  const std::string name = TextOf(FieldOf(object, "metadata"), "name");
  if (absl::IsAlreadyExists(created.status())) {
    return SettleExisting(kind, resource, {name_space, name}, job);
  }
  return RefusedCreate(absl::StrCat(NameOf(kind), " ", name), created.status());
}

Outcome EffectRunner::SettleExisting(ChildKind kind, const kube::Resource& resource,
                                     const kube::ObjectKey& key, const plan::ObservedJob& job) {
  const std::string what = absl::StrCat(NameOf(kind), " ", key.name);
  const absl::StatusOr<json> existing = client_.Get(resource, key);
  if (absl::IsNotFound(existing.status())) return AgainAfter(kOwnGoingAgain);
  if (!existing.ok()) {
    Outcome outcome;
    outcome.status = existing.status();
    return outcome;
  }
  if (!IsOwnedBy(*existing, job.job.metadata.uid)) {
    return SettleForeign(what, *existing, key.name_space);
  }
  if (IsDeleting(*existing)) {
    Outcome outcome = AgainAfter(kOwnGoingAgain);
    if (kind == ChildKind::kPod) outcome.going = ProjectPod(*existing);
    return outcome;
  }
  return IsWatched(*existing) ? Created(kind, *existing) : TakeAway(kind, resource, key, *existing);
}

// One of the job's own that somebody has taken out of the operator's sight: its end would go
// unnoticed, and nobody would clean it up.
Outcome EffectRunner::TakeAway(ChildKind kind, const kube::Resource& resource,
                               const kube::ObjectKey& key, const json& existing) {
  log::Warning("an object has lost the label by which it is watched and is made anew",
               {{"object", absl::StrCat(NameOf(kind), " ", key.ToString())},
                {"label", api::kChildSelector}});
  Outcome outcome = Delete(resource, key, {.uid = TextOf(FieldOf(existing, "metadata"), "uid")});
  outcome.again_after = kOwnGoingAgain;
  return outcome;
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
  const auto other = jobs_.Get({name_space, name});
  const bool lives =
      other != nullptr && other->job.metadata.uid == TextOf(owner, "uid") && !other->deleting;
  // Else the garbage collector is about to remove it.
  return lives ? NameConflict(what, holder) : AgainAfter(kForeignGoingAgain);
}

}  // namespace hetero::reconcile
