#include "operator/plan/pod_deletion.h"

#include <algorithm>
#include <unordered_map>

#include "operator/plan/node_loss.h"

namespace hetero::plan {
namespace {

constexpr int64_t kFrozenGraceSeconds = 5;  // of a trainer that no longer answers

DeleteChild Delete(const ObservedPod& pod, std::optional<int64_t> grace_seconds) {
  return {
      .kind = ChildKind::kPod, .name = pod.name, .uid = pod.uid, .grace_seconds = grace_seconds};
}

ReportExit ExitOf(const Slot& slot) {
  const ObservedPod& pod = *slot.pod;
  return {.role = slot.role->name,
          .index = slot.index,
          .incarnation = pod.incarnation,
          .exit_code = pod.exit_code,
          .signal = pod.signal,
          .message = !pod.reason.empty() ? pod.reason : "given up",
          .replaced = true};
}

std::unordered_map<const ObservedPod*, const Slot*> SlotsByPod(const Pass& pass) {
  std::unordered_map<const ObservedPod*, const Slot*> slots;
  for (const Slot& slot : pass.slots) {
    if (slot.pod != nullptr) slots[slot.pod] = &slot;
  }
  return slots;
}

bool HeadListens(const Pass& pass) {
  const ObservedPod* head = pass.HeadPod();
  return head != nullptr && head->runtime == ObservedPod::Runtime::kRunning;
}

std::optional<int64_t> Grace(Pass& pass, const ObservedPod& pod) {
  if (OnLostNode(pass, pod)) return 0;
  const bool frozen = pass.Counted(pod) && !pod.ended();
  return frozen ? std::optional<int64_t>(kFrozenGraceSeconds) : std::nullopt;
}

}  // namespace

void DeleteGivenUpPods(Pass& pass) {
  Stage stage;
  const auto slots = SlotsByPod(pass);
  for (const auto& pod : pass.seen.pods) {
    if (pod->deletion_time) continue;
    const bool old = pod->attempt < pass.before.attempt || pass.OfNoAttempt(*pod);
    const bool counted = pass.Counted(*pod);
    const auto found = slots.find(pod.get());
    const Slot* slot = found == slots.end() ? nullptr : found->second;
    const bool surplus = slot == nullptr && pod->attempt == pass.before.attempt &&
                         pass.before.attempt == pass.status.attempt;
    if (!old && !counted && !surplus) continue;
    stage.push_back(Delete(*pod, Grace(pass, *pod)));
    const bool worker = slot != nullptr && slot->role->type != api::RoleType::kHead;
    if (counted && worker && HeadListens(pass)) stage.push_back(ExitOf(*slot));
  }
  pass.AddStage(std::move(stage));
}

void DeleteAllPods(Pass& pass) {
  Stage stage;
  bool selected = false;
  for (const auto& pod : pass.seen.pods) {
    if (pod->deletion_time) continue;
    if (pod->labelled) {
      selected = true;
    } else {
      stage.push_back(Delete(*pod, std::nullopt));
    }
  }
  if (selected) stage.push_back(DeletePods{});
  pass.AddStage(std::move(stage));
}

void ForceStuckPods(Pass& pass) {
  Stage stage;
  for (const auto& pod : pass.seen.pods) {
    if (pod->forced || !StuckTerminating(pass, *pod)) continue;  // once more would change nothing
    stage.push_back(Delete(*pod, 0));
  }
  pass.AddStage(std::move(stage));
}

}  // namespace hetero::plan
