#include "operator/plan/clean_up.h"

#include "operator/children/names.h"
#include "operator/plan/pod_deletion.h"

namespace hetero::plan {
namespace {

using Kind = Effect::Kind;
using Resource = Effect::Resource;

bool WithTls(const Pass& pass) { return pass.spec.network.tls == api::Switch::kEnabled; }

Effect Delete(Resource resource, const std::string& name, const std::string& uid) {
  Effect effect;
  effect.kind = Kind::kDelete;
  effect.resource = resource;
  effect.name = name;
  effect.uid = uid;
  return effect;
}

Effect DeleteSecret(const Pass& pass) {
  Effect effect;
  effect.kind = Kind::kDeleteSecret;
  effect.name = children::SecretName(pass.metadata);
  return effect;
}

void DeleteObject(const std::shared_ptr<const ObservedObject>& object, Resource resource,
                  std::vector<Effect>& stage) {
  if (object == nullptr || object->deleting) return;
  stage.push_back(Delete(resource, object->name, object->uid));
}

void DeleteRunningPods(Pass& pass) {
  if (pass.before.Is(api::ConditionType::kSucceeded) && pass.before.completion_time) {
    const base::WallTime patience = *pass.before.completion_time + pass.settings.pod_kill_grace;
    pass.WakeAt(patience);
    if (pass.now < patience) return;
  }
  std::vector<Effect> stage;
  for (const auto& pod : pass.seen.pods) {
    if (pod->ended() || pod->deletion_time) continue;
    stage.push_back(Delete(Resource::kPod, pod->name, pod->uid));
  }
  pass.AddStage(std::move(stage));
}

// The Secret cannot be seen, so it goes before what can: an interruption between the two is
// noticed, and so is an authority that was only half made.
void DeleteEverythingElse(Pass& pass) {
  std::vector<Effect> stage;
  DeleteObject(pass.seen.config_map, Resource::kConfigMap, stage);
  DeleteObject(pass.seen.service, Resource::kService, stage);
  DeleteObject(pass.seen.network_policy, Resource::kNetworkPolicy, stage);
  if (!stage.empty() && WithTls(pass)) pass.AddStage({DeleteSecret(pass)});
  pass.AddStage(std::move(stage));
}

}  // namespace

void DeleteConfig(Pass& pass) {
  if (pass.seen.config_map == nullptr || pass.seen.config_map->deleting) return;
  if (WithTls(pass)) pass.AddStage({DeleteSecret(pass)});
  std::vector<Effect> stage;
  DeleteObject(pass.seen.config_map, Resource::kConfigMap, stage);
  pass.AddStage(std::move(stage));
}

void CleanUp(Pass& pass) {
  switch (pass.policy.clean_pod_policy) {
    case api::CleanPodPolicy::kAll:
      DeleteAllPods(pass);
      DeleteEverythingElse(pass);
      break;
    case api::CleanPodPolicy::kRunning: {
      DeleteRunningPods(pass);
      std::vector<Effect> stage;
      DeleteObject(pass.seen.service, Resource::kService, stage);
      pass.AddStage(std::move(stage));
      break;
    }
    case api::CleanPodPolicy::kNone:
      break;
  }
}

}  // namespace hetero::plan
