#include "operator/plan/clean_up.h"

#include <algorithm>

#include "operator/plan/gang.h"
#include "operator/plan/pod_deletion.h"

namespace hetero::plan {
namespace {

// By the spec, or by that of an earlier attempt.
bool HasSecret(const Pass& pass) {
  return pass.spec.network.tls == api::Switch::kEnabled ||
         (pass.seen.config_map != nullptr && !pass.seen.config_map->ca_pem.empty());
}

void DeleteUnlessGoing(const std::shared_ptr<const ObservedObject>& object, ChildKind kind,
                       Stage& stage) {
  if (object == nullptr || object->deleting) return;
  stage.push_back(DeleteChild{.kind = kind, .name = object->name, .uid = object->uid});
}

void DeleteRunningPods(Pass& pass) {
  if (pass.before.Is(api::ConditionType::kSucceeded) && pass.before.completion_time) {
    const base::WallTime patience = *pass.before.completion_time + pass.settings.pod_kill_grace;
    pass.WakeAt(patience);
    if (pass.now < patience) return;
  }
  Stage stage;
  for (const auto& pod : pass.seen.pods) {
    if (pod->ended() || pod->deletion_time) continue;
    stage.push_back(DeleteChild{.kind = ChildKind::kPod, .name = pod->name, .uid = pod->uid});
  }
  pass.AddStage(std::move(stage));
}

// Pods run that nobody has ended yet.
bool EndsPods(const Pass& pass) {
  return std::any_of(pass.seen.pods.begin(), pass.seen.pods.end(),
                     [](const auto& pod) { return !pod->deletion_time; });
}

}  // namespace

bool ObjectsLeft(const Pass& pass) {
  return pass.seen.config_map != nullptr || pass.seen.service != nullptr ||
         pass.seen.network_policy != nullptr || !pass.seen.pod_groups.empty();
}

// The Secret cannot be seen, so it goes before what can: an interruption between the two is
// noticed, and so is an authority that was only half made. Where somebody else has deleted all
// that, it goes with the pods.
void DeleteObjects(Pass& pass) {
  Stage stage;
  DeleteUnlessGoing(pass.seen.config_map, ChildKind::kConfigMap, stage);
  DeleteUnlessGoing(pass.seen.service, ChildKind::kService, stage);
  DeleteUnlessGoing(pass.seen.network_policy, ChildKind::kNetworkPolicy, stage);
  if ((!stage.empty() || EndsPods(pass)) && HasSecret(pass)) pass.AddStage({DeleteSecret{}});
  pass.AddStage(std::move(stage));
  DeletePodGroups(pass);
}

void CleanUp(Pass& pass) {
  switch (pass.policy.clean_pod_policy) {
    case api::CleanPodPolicy::kAll:
      DeleteAllPods(pass);
      DeleteObjects(pass);
      break;
    case api::CleanPodPolicy::kRunning: {
      DeleteRunningPods(pass);
      Stage stage;
      DeleteUnlessGoing(pass.seen.service, ChildKind::kService, stage);
      pass.AddStage(std::move(stage));
      DeletePodGroups(pass);
      break;
    }
    case api::CleanPodPolicy::kNone:
      break;
  }
}

}  // namespace hetero::plan
