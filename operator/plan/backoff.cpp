#include "operator/plan/backoff.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "api/job_status.h"

namespace hetero::plan {
namespace {

constexpr base::Duration kLongLife = std::chrono::minutes(2);
constexpr base::Duration kAvoided = std::chrono::minutes(10);
constexpr size_t kMaxAvoided = 16;  // they become part of every pod

base::Duration DelayAfter(int32_t short_lives, const children::Settings& settings) {
  if (short_lives < 2) return {};
  base::Duration delay = settings.pod_backoff;
  for (int32_t i = 2; i < short_lives && delay < settings.pod_backoff_limit; ++i) delay *= 2;
  return std::min(delay, settings.pod_backoff_limit);
}

const Backoff::Slot* Find(const Pass& pass, const Slot& slot) {
  const auto& slots = pass.plan.backoff.slots;
  const auto found = slots.find(slot.member());
  return found == slots.end() ? nullptr : &found->second;
}

void Avoid(Pass& pass, const std::string& node) {
  auto& avoided = pass.plan.backoff.avoided;
  avoided[node] = pass.now + kAvoided;
  if (avoided.size() <= kMaxAvoided) return;
  avoided.erase(std::min_element(avoided.begin(), avoided.end(),
                                 [](const auto& a, const auto& b) { return a.second < b.second; }));
}

}  // namespace

void NoteEnd(Pass& pass, const Failure& failure) {
  // It was told to go, and is made anew because it is wanted. A trainer that left while the others
  // go on may leave again as soon as it is back: that it was asked to, only its exit code says.
  if (failure.blameless() && failure.kind != Failure::Kind::kAsked) return;
  const ObservedPod& pod = *failure.slot->pod;
  if (RejectedByNode(pod) && !pod.node.empty()) Avoid(pass, pod.node);
  Backoff::Slot& slot = pass.plan.backoff.slots[failure.slot->member()];
  const bool lived = failure.time - pod.created >= kLongLife;
  slot.short_lives = lived ? 0 : std::min(slot.short_lives, 1000) + 1;
  slot.until = pass.now + DelayAfter(slot.short_lives, pass.settings);
}

bool MayFill(Pass& pass, const Slot& slot) {
  const Backoff::Slot* backoff = Find(pass, slot);
  if (backoff == nullptr || backoff->until <= pass.now) return true;
  pass.WakeAt(backoff->until);
  return false;
}

std::string DescribeBackoff(const Pass& pass, const Slot& slot) {
  const Backoff::Slot* backoff = Find(pass, slot);
  if (backoff == nullptr || backoff->until <= pass.now) return "";
  return absl::StrCat("ended ", backoff->short_lives,
                      " times soon after it was made; made again at ",
                      api::FormatTime(backoff->until));
}

std::vector<std::string> AvoidedNodes(const Pass& pass) {
  std::vector<std::string> nodes;
  for (const auto& [node, until] : pass.plan.backoff.avoided) {
    if (until > pass.now) nodes.push_back(node);
  }
  return nodes;
}

void ForgetOldBackoff(Pass& pass) {
  Backoff& backoff = pass.plan.backoff;
  std::erase_if(backoff.avoided, [&pass](const auto& entry) { return entry.second <= pass.now; });
  // Who sets the clock back does not make a wait longer than it can be at most.
  for (auto& [node, until] : backoff.avoided) until = std::min(until, pass.now + kAvoided);
  for (auto& [member, slot] : backoff.slots) {
    slot.until = std::min(slot.until, pass.now + pass.settings.pod_backoff_limit);
  }
  if (backoff.slots.empty()) return;
  for (const Slot& slot : pass.slots) {
    const bool lives = slot.pod != nullptr && !slot.pod->ended() && !slot.pod->node.empty() &&
                       pass.now - slot.pod->created >= kLongLife;
    if (lives) backoff.slots.erase(slot.member());
  }
}

}  // namespace hetero::plan
