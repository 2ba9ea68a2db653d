#include "operator/plan/pod_lives.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "api/money.h"

namespace hetero::plan {
namespace {

using std::chrono::seconds;

base::WallTime WholeSeconds(base::WallTime time) { return std::chrono::floor<seconds>(time); }

const api::Role* RoleOf(const api::Spec& spec, const std::string& name) {
  const auto found = std::find_if(spec.roles.begin(), spec.roles.end(),
                                  [&name](const api::Role& role) { return role.name == name; });
  return found == spec.roles.end() ? nullptr : &*found;
}

// What the role states, or its share of what the node costs. One that asks for nothing has no share
// that could be told.
std::optional<Price> PriceOf(const api::Spec& spec, const ObservedPod& pod,
                             const std::map<std::string, ObservedNode>& nodes) {
  const api::Role* role = RoleOf(spec, pod.role);
  if (role != nullptr && !role->price_per_hour.empty()) {
    const std::optional<int64_t> own = api::MicroDollars(role->price_per_hour);
    return own ? std::optional(Price{.paid = *own, .on_demand = *own}) : std::nullopt;
  }
  const auto node = nodes.find(pod.node);
  if (node == nodes.end() || !node->second.price) return std::nullopt;
  const double share = children::DominantShare(pod.requests, node->second.allocatable);
  if (share <= 0) return std::nullopt;
  const auto part = [share](int64_t price) {
    return static_cast<int64_t>(std::llround(share * static_cast<double>(price)));
  };
  return Price{.paid = part(node->second.price->paid),
               .on_demand = part(node->second.price->on_demand)};
}

// Its own container's end is the pod's, whatever goes on in others.
std::optional<base::WallTime> EndOf(const ObservedPod& pod) {
  if (!pod.ended()) return std::nullopt;
  return pod.finished ? pod.finished : pod.failed_by;
}

}  // namespace

void PodLives::Renew(const api::Spec& spec, const ObservedPod& pod,
                     const std::map<std::string, ObservedNode>& nodes, Known& known) {
  PodLife& life = known.life;
  life.role = pod.role;
  life.incarnation = pod.incarnation;
  if (pod.bound) life.start = WholeSeconds(*pod.bound);
  if (const auto end = EndOf(pod)) {
    life.end = WholeSeconds(*end);
    if (life.start) life.end = std::max(*life.end, *life.start);
  }
  known.deletion_asked = pod.deletion_asked;
  if (const auto node = nodes.find(pod.node); node != nodes.end()) {
    known.node_silent = node->second.ready ? std::nullopt : std::optional(node->second.since);
  }
  if (!life.price) life.price = PriceOf(spec, pod, nodes);
}

void PodLives::Depart(const Known& known, const std::string& uid, base::WallTime gone) {
  PodLife life = known.life;
  if (life.start && !life.end) {
    life.end = std::max(WholeSeconds(gone), *life.start);
    const base::WallTime from =
        std::min({*life.end - kNewsDelay, known.deletion_asked.value_or(gone),
                  known.node_silent.value_or(gone)});
    life.uncertain = *life.end - std::clamp(WholeSeconds(from), *life.start, *life.end);
  }
  departed_uids_.insert(uid);
  departed_.emplace_back(uid, std::move(life));
}

PodLives::Known PodLives::TakeUp(const std::string& uid, std::map<std::string, Known>& before) {
  Known known;
  if (const auto found = before.find(uid); found != before.end()) {
    known = std::move(found->second);
    before.erase(found);
  } else if (departed_uids_.erase(uid) > 0) {
    const auto departed = std::find_if(departed_.begin(), departed_.end(),
                                       [&uid](const auto& one) { return one.first == uid; });
    known.life.price = departed->second.price;
    departed_.erase(departed);
  }
  return known;
}

ObservedLives PodLives::See(const api::Spec& spec, const std::optional<api::JobCost>& account,
                            const std::vector<std::shared_ptr<const ObservedPod>>& pods,
                            const std::vector<RemovedPod>& removed,
                            const std::map<std::string, ObservedNode>& nodes, base::WallTime now) {
  std::map<std::string, Known> before = std::exchange(known_, {});
  if (offered_ && account == offered_) Stored();
  // Of a process that has just begun, or when somebody else has written it, nothing is certain but
  // what can be seen. A job without an account has none that could have missed anything.
  ObservedLives seen{
      .there = {}, .departed = {}, .continuous = !account || (began_ && account == base_)};
  for (const auto& pod : pods) {
    if (settled_.contains(pod->uid)) continue;
    Known known = TakeUp(pod->uid, before);
    Renew(spec, *pod, nodes, known);
    seen.there.push_back(known.life);
    known_[pod->uid] = std::move(known);
  }
  for (const RemovedPod& gone : removed) {
    const std::string& uid = gone.last->uid;
    if (known_.contains(uid) || settled_.contains(uid)) continue;
    Known known = TakeUp(uid, before);
    Renew(spec, *gone.last, nodes, known);
    Depart(known, uid, gone.time);
  }
  for (const auto& [uid, known] : before) Depart(known, uid, now);
  for (const auto& [uid, life] : departed_) seen.departed.push_back(life);
  return seen;
}

void PodLives::Offer(const std::optional<api::JobCost>& account) {
  offered_ = account;
  offered_uids_ = departed_uids_;
}

void PodLives::Stored() {
  began_ = true;
  base_ = std::exchange(offered_, std::nullopt);
  std::erase_if(departed_,
                [this](const auto& departed) { return offered_uids_.contains(departed.first); });
  for (const std::string& uid : std::exchange(offered_uids_, {})) {
    departed_uids_.erase(uid);
    if (!settled_.insert(uid).second) continue;
    order_.push_back(uid);
    if (order_.size() <= kKept) continue;
    settled_.erase(order_.front());
    order_.erase(order_.begin());
  }
}

}  // namespace hetero::plan
