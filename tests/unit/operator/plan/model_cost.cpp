#include <string>
#include <vector>

#include "operator/plan/accounting.h"
#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {

void ModelCluster::Remove(const std::string& pod) {
  const auto found = pods.find(pod);
  if (found == pods.end()) return;
  removed.push_back({.last = found->second, .time = now});
  pods.erase(found);
}

void ModelCluster::Vanish(const std::string& pod) { Remove(pod); }

void ModelCluster::VanishTerminating() {
  std::vector<std::string> names;
  for (const auto& [name, pod] : pods) {
    if (pod->deletion_time) names.push_back(name);
  }
  for (const std::string& name : names) Remove(name);
}

void ModelCluster::SeeLives(Observed& seen) {
  if (KeepsAccount(*job, settings)) {
    const std::vector<RemovedPod> news(removed.begin() + static_cast<ptrdiff_t>(removed_seen),
                                       removed.end());
    seen.lives = lives.See(job->job.spec, job->status.cost, seen.pods, news, nodes, now);
  }
  removed_seen = removed.size();
}

double ModelCluster::TrueDollars() const {
  double dollars = 0;
  const auto add = [&](const ObservedPod& pod, base::WallTime gone) {
    if (!pod.bound) return;
    for (const api::Role& role : job->job.spec.roles) {
      if (role.name != pod.role || role.price_per_hour.empty()) continue;
      const base::WallTime end = pod.finished ? *pod.finished : pod.failed_by.value_or(gone);
      dollars += std::stod(role.price_per_hour) * base::ToSeconds(end - *pod.bound) / 3600;
    }
  };
  for (const RemovedPod& pod : removed) add(*pod.last, pod.time);
  for (const auto& [name, pod] : pods) add(*pod, now);
  return dollars;
}

void ModelCluster::RestartOperator() {
  settled.clear();
  backoff = {};
  lives = {};
  removed_seen = removed.size();
}

}  // namespace hetero::plan
