#include "operator/plan/pass.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "operator/children/names.h"
#include "operator/plan/autoscale.h"
#include "operator/plan/workload.h"

namespace hetero::plan {

Pass::Pass(const Observed& observed, const children::Settings& the_settings, base::WallTime the_now)
    : seen(observed),
      settings(the_settings),
      now(the_now),
      today(std::chrono::floor<std::chrono::seconds>(the_now)),
      object(*observed.job),
      metadata(object.job.metadata),
      spec(object.job.spec),
      policy(spec.run_policy),
      before(object.status),
      status(plan.status),
      counted_(before.uncounted.begin(), before.uncounted.end()) {
  plan.backoff = seen.backoff;
  status = before;
  const int32_t stored = std::clamp(before.attempt, 0, kMaxAttempt);
  status.attempt = stored;
  // Never behind what stands in the cluster: an old view of the status, or one that somebody reset,
  // must not make a second set of pods.
  for (const auto& pod : seen.pods) {
    if (pod->attempt <= stored + kAttemptLead) {
      status.attempt = std::max(status.attempt, pod->attempt);
    }
  }
  if (status.attempt != before.attempt) {  // of an earlier attempt
    status.images.reset();
    status.script_restarts.reset();
  }
  FillSlots();
}

void Pass::OpenNextAttempt() {
  status.attempt = std::min(status.attempt, kMaxAttempt - 1) + 1;
  status.script_restarts.reset();
  status.images =
      api::AttemptImages{.runtime = settings.runtime_image, .trainer = settings.trainer_image};
  FillSlots();
}

bool Pass::OfNoAttempt(const ObservedPod& pod) const {
  return pod.attempt == 0 ||
         pod.attempt > std::clamp(before.attempt, 0, kMaxAttempt) + kAttemptLead;
}

void Pass::FillSlots() {
  std::unordered_map<std::string, const ObservedPod*> by_name;
  for (const auto& pod : seen.pods) by_name[pod->name] = pod.get();
  slots.clear();
  for (const api::Role& role : spec.roles) {
    for (int32_t index = 0; index < Wanted(role); ++index) {
      const std::string name = children::PodName(metadata, role.name, index);
      const auto found = by_name.find(name);
      if (!HasRoom(*this, role, index, found != by_name.end())) continue;
      Slot& slot = slots.emplace_back();
      slot.role = &role;
      slot.index = index;
      slot.name = name;
      if (found == by_name.end()) continue;
      slot.holder = found->second;
      if (slot.holder->attempt == status.attempt) slot.pod = slot.holder;
    }
  }
}

int32_t Pass::Wanted(const api::Role& role) const { return WantedReplicas(spec, status, role); }

const ObservedPod* Pass::HeadPod() const {
  const auto slot = std::find_if(slots.begin(), slots.end(), [](const Slot& candidate) {
    return candidate.role->type == api::RoleType::kHead;
  });
  return slot == slots.end() ? nullptr : slot->pod;
}

const HeadReport* Pass::Report() const {
  if (!seen.head || seen.head->attempt != status.attempt) return nullptr;
  return seen.head->state == HeadReport::State::kUnknown ? nullptr : &*seen.head;
}

void Pass::AddStage(Stage stage) {
  if (!stage.empty()) plan.stages.push_back(std::move(stage));
}

void Pass::AddEvent(bool warning, std::string reason, std::string action, std::string note) {
  plan.events.push_back({warning, std::move(reason), std::move(action), std::move(note)});
}

void Pass::WakeAt(base::WallTime time) {
  if (time <= now) return;
  const base::Duration wait = time - now;
  if (!plan.requeue_after || wait < *plan.requeue_after) plan.requeue_after = wait;
}

}  // namespace hetero::plan
