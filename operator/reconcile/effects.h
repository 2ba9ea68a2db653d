#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "operator/children/settings.h"
#include "operator/kube/client.h"
#include "operator/kube/store.h"
#include "operator/plan/effect.h"
#include "operator/plan/observed.h"
#include "operator/reconcile/call_pool.h"
#include "operator/reconcile/certificates.h"
#include "operator/reconcile/heads.h"

namespace hetero::reconcile {

// What came of one effect.
struct Outcome {
  absl::Status status;                            // worth another try soon
  std::optional<plan::CreateError> create_error;  // the API refuses the object as things stand
  std::optional<base::Duration> again_after;      // something has to go away first
  bool given_up = false;                          // the namespace goes, or stop was asked for
  bool put_off = false;                           // not tried: the stage has lasted long enough
  bool hopeless = false;  // not tried: the quota had no room for a pod of the same role

  // What the stores will show.
  std::shared_ptr<const plan::ObservedPod> pod;
  std::shared_ptr<const plan::ObservedObject> object;
  std::shared_ptr<const plan::ObservedWorkload> workload;
  std::string replaced_version;  // of the workload before; empty: it has just been made
  bool of_workload = false;      // a refusal of it is none of pods
  plan::ChildKind kind = plan::ChildKind::kPod;    // of `pod` or `object`
  std::shared_ptr<const plan::ObservedPod> going;  // the job's own, in the way of a new one
  std::string deleted_uid;
  std::optional<int64_t> grace_seconds;
  bool pods_deleted = false;
  bool job_deleted = false;

  bool ok() const {
    return status.ok() && !create_error && !again_after && !given_up && !put_off && !hopeless;
  }
};

// By place in spec.roles, those for which a quota has no room: their pods ask for equally much.
using FullRoles = std::vector<std::atomic<bool>>;

// A timeout of ours, of the server's or of an admission webhook, or no server at all.
bool NobodyAnswers(const absl::Status& status);

// Carries effects out against the API. Every call is safe to repeat: names are deterministic, and
// what is deleted is named by uid. Safe from any thread.
class EffectRunner {
 public:
  // `jobs` tells whether another job of that name still lives.
  EffectRunner(kube::Client& client, base::Clock& clock, const kube::Store<plan::ObservedJob>& jobs,
               Heads& heads, const OperatorIdentity& identity, const children::Settings& settings,
               int parallelism);

  // After so long no other call of a stage is begun.
  static constexpr base::Duration kLongestStage = std::chrono::seconds(5);

  // Effects of one stage, several at once; outcomes in their order. An object to be created is
  // rendered by the call that sends it, so that at most `parallelism` of them exist at a time. Once
  // a call had no answer, or the server none of its own, the rest is put off: the caller waits for
  // one timeout and not for one after another. Pods of roles in `full` are not tried; it is added
  // to.
  std::vector<Outcome> RunTogether(std::span<const plan::Effect> effects,
                                   const plan::ObservedJob& job, FullRoles& full,
                                   std::stop_token stop);

 private:
  Outcome RunGuarded(const plan::Effect& effect, const plan::ObservedJob& job);
  Outcome Run(const plan::CreateChild& effect, const plan::ObservedJob& job);
  Outcome Run(const plan::CreatePod& effect, const plan::ObservedJob& job);
  Outcome Run(const plan::CreateTrust& effect, const plan::ObservedJob& job);
  Outcome Run(const plan::CreateWorkload& effect, const plan::ObservedJob& job);
  Outcome Run(const plan::CreatePodGroup& effect, const plan::ObservedJob& job);
  Outcome Run(const plan::AdoptWorkload& effect, const plan::ObservedJob& job);
  Outcome Run(const plan::UpdateWorkload& effect, const plan::ObservedJob& job);
  Outcome Run(const plan::DeleteChild& effect, const plan::ObservedJob& job);
  Outcome Run(const plan::DeletePods& effect, const plan::ObservedJob& job);
  Outcome Run(const plan::DeleteSecret& effect, const plan::ObservedJob& job);
  Outcome Run(const plan::DeleteJob& effect, const plan::ObservedJob& job);
  Outcome Run(const plan::ReportExit& effect, const plan::ObservedJob& job);
  Outcome Run(const plan::StopHead& effect, const plan::ObservedJob& job);
  Outcome Run(const plan::WarnHead& effect, const plan::ObservedJob& job);

  Outcome Create(plan::ChildKind kind, const nlohmann::json& object, const plan::ObservedJob& job);
  // `resource`: where objects of that kind are.
  Outcome Create(plan::ChildKind kind, const kube::Resource& resource, const nlohmann::json& object,
                 const plan::ObservedJob& job);
  Outcome SettleExisting(plan::ChildKind kind, const kube::Resource& resource,
                         const kube::ObjectKey& key, const plan::ObservedJob& job);
  Outcome TakeAway(plan::ChildKind kind, const kube::Resource& resource, const kube::ObjectKey& key,
                   const nlohmann::json& existing);
  Outcome SettleForeign(const std::string& what, const nlohmann::json& existing,
                        const std::string& name_space);
  Outcome TakeOver(const nlohmann::json& existing, const nlohmann::json& own,
                   const plan::ObservedJob& job);
  std::optional<Outcome> CreateSecret(const JobTrust& trust, const plan::ObservedJob& job);
  Outcome ReplaceConfigMap(const std::string& uid, const nlohmann::json& object,
                           const plan::ObservedJob& job);
  Outcome Delete(const kube::Resource& resource, const kube::ObjectKey& key,
                 const kube::DeleteOptions& options);

  kube::Client& client_;
  base::Clock& clock_;
  const kube::Store<plan::ObservedJob>& jobs_;
  Heads& heads_;
  const OperatorIdentity& identity_;
  const children::Settings& settings_;
  CallPool pool_;
};

// The object of a pod, for the job that the effect was planned for.
nlohmann::json RenderPod(const plan::CreatePod& effect, const api::HeteroTrainingJob& job,
                         const children::Settings& settings);

// An outcome for a create that the API refused.
Outcome RefusedCreate(const std::string& what, const absl::Status& status);

}  // namespace hetero::reconcile
