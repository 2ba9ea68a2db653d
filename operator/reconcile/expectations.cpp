#include "operator/reconcile/expectations.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace hetero::reconcile {

using plan::ChildKind;
using plan::ObservedObject;
using plan::ObservedPod;

void Expectations::PodCreated(std::shared_ptr<const ObservedPod> pod, base::Instant now) {
  const std::string uid = pod->uid;
  created_[uid] = {.pod = std::move(pod), .until = now + kPatience};
}

void Expectations::ObjectCreated(ChildKind kind, std::shared_ptr<const ObservedObject> object,
                                 base::Instant now) {
  const std::string uid = object->uid;
  created_[uid] = {.kind = kind, .object = std::move(object), .until = now + kObjectPatience};
}

void Expectations::WorkloadWritten(std::shared_ptr<const plan::ObservedWorkload> workload,
                                   const std::string& replaced, base::Instant now) {
  Writing& writing = written_[workload->uid];
  if (!replaced.empty()) writing.replaced.push_back(replaced);
  writing.workload = std::move(workload);
  writing.until = now + kPatience;
}

void Expectations::StillThere(std::shared_ptr<const ObservedPod> pod, base::Instant now) {
  const std::string uid = pod->uid;
  deleted_.erase(uid);
  created_[uid] = {.pod = std::move(pod), .until = now + kGoingPatience};
}

void Expectations::Deleted(const std::string& uid, base::WallTime gone_by, base::Instant now) {
  created_.erase(uid);
  deleted_[uid] = {.gone_by = gone_by, .until = now + kPatience};
}

void Expectations::Overlay(plan::Observed& observed, base::Instant now, base::WallTime wall_now) {
  std::erase_if(created_, [now](const auto& entry) { return entry.second.until <= now; });
  std::erase_if(deleted_, [now](const auto& entry) { return entry.second.until <= now; });
  std::erase_if(written_, [now](const auto& entry) { return entry.second.until <= now; });
  OverlayPods(observed, wall_now);
  OverlayObject(ChildKind::kService, observed.service);
  OverlayObject(ChildKind::kConfigMap, observed.config_map);
  OverlayObject(ChildKind::kNetworkPolicy, observed.network_policy);
  OverlayPodGroups(observed);
  OverlayWorkloads(observed);
}

void Expectations::OverlayPodGroups(plan::Observed& observed) {
  auto& groups = observed.pod_groups;
  for (const auto& group : groups) created_.erase(group->uid);
  std::erase_if(groups, [this](const auto& shown) { return deleted_.contains(shown->uid); });
  for (const auto& [uid, creation] : created_) {
    if (creation.kind == ChildKind::kPodGroup) groups.push_back(creation.object);
  }
}

// A version that is not one of those written over is newer.
void Expectations::OverlayWorkloads(plan::Observed& observed) {
  auto& workloads = observed.workloads;
  std::erase_if(workloads, [this](const auto& shown) { return deleted_.contains(shown->uid); });
  std::set<std::string> shown;
  for (auto& workload : workloads) {
    shown.insert(workload->uid);
    const auto writing = written_.find(workload->uid);
    if (writing == written_.end()) continue;
    const std::vector<std::string>& replaced = writing->second.replaced;
    if (std::find(replaced.begin(), replaced.end(), workload->resource_version) != replaced.end()) {
      workload = writing->second.workload;
    } else {
      written_.erase(writing);
    }
  }
  for (const auto& [uid, writing] : written_) {
    const bool made = writing.replaced.empty();
    if (made && !shown.contains(uid) && !deleted_.contains(uid)) {
      workloads.push_back(writing.workload);
    }
  }
}

void Expectations::OverlayPods(plan::Observed& observed, base::WallTime wall_now) {
  auto& pods = observed.pods;
  for (std::shared_ptr<const ObservedPod>& pod : pods) {
    if (const auto creation = created_.find(pod->uid); creation != created_.end()) {
      const ObservedPod& known = *creation->second.pod;
      if ((known.deletion_time && !pod->deletion_time) || (known.forced && !pod->forced)) {
        pod = creation->second.pod;  // the API has shown it Terminating, and the store does not yet
      } else {
        created_.erase(creation);
      }
    }
    const auto deletion = deleted_.find(pod->uid);
    if (deletion == deleted_.end() || pod->deletion_time) continue;
    auto going = std::make_shared<ObservedPod>(*pod);
    going->deletion_time = deletion->second.gone_by;
    pod = std::move(going);
  }
  std::erase_if(pods, [&](const std::shared_ptr<const ObservedPod>& pod) {
    const auto deletion = deleted_.find(pod->uid);
    return deletion != deleted_.end() && deletion->second.gone_by <= wall_now;
  });
  std::set<std::string> shown;
  for (const auto& pod : pods) shown.insert(pod->uid);
  std::vector<std::shared_ptr<const ObservedPod>> made;
  std::set<std::string> names;
  for (const auto& [uid, creation] : created_) {
    if (creation.pod == nullptr || shown.contains(uid)) continue;
    made.push_back(creation.pod);
    names.insert(creation.pod->name);
  }
  // One of the same name is older: ours could only be created once that one was gone.
  std::erase_if(pods, [&names](const auto& pod) { return names.contains(pod->name); });
  pods.insert(pods.end(), made.begin(), made.end());
}

void Expectations::OverlayObject(ChildKind kind, std::shared_ptr<const ObservedObject>& shown) {
  if (shown != nullptr) {
    created_.erase(shown->uid);
    if (deleted_.contains(shown->uid)) shown = nullptr;
  }
  for (const auto& [uid, creation] : created_) {
    if (creation.object != nullptr && creation.kind == kind) shown = creation.object;
  }
}

std::optional<base::Duration> Expectations::Remaining(base::Instant now) const {
  std::optional<base::Duration> least;
  const auto take = [&](base::Instant until) {
    const base::Duration left = std::max(base::Duration::zero(), base::Duration(until - now));
    least = std::min(least.value_or(left), left);
  };
  for (const auto& [uid, creation] : created_) take(creation.until);
  for (const auto& [uid, deletion] : deleted_) take(deletion.until);
  for (const auto& [uid, writing] : written_) take(writing.until);
  return least;
}

}  // namespace hetero::reconcile
