#include "tests/bench/operator_scale/cluster_seen.h"

#include <algorithm>

#include "api/labels.h"
#include "base/json_access.h"

namespace hetero::bench {

using testing::ControlPlane;
using testing::json;

ClusterSeen::ClusterSeen()
    : jobs_(
          ControlPlane::Get().client(), base::Clock::Real(), registry_,
          {.resource = testing::kJobs},
          [](const json& object, const auto&) { return ViewJob(object); },
          [this](const auto& key, const auto&, const auto& now) { OnJob(key, now); }),
      pods_(
          ControlPlane::Get().client(), base::Clock::Real(), registry_,
          {.resource = kube::kPods, .label_selector = api::kChildSelector},
          [](const json& object, const auto&) { return ViewPod(object); },
          [this](const auto& key, const auto& before, const auto& now) {
            OnPod(key, before, now);
          }) {
  threads_.emplace_back([this](std::stop_token stop) { jobs_.Run(stop); });
  threads_.emplace_back([this](std::stop_token stop) { pods_.Run(stop); });
  testing::WaitFor("jobs and pods are listed", [this] { return jobs_.synced() && pods_.synced(); });
}

std::shared_ptr<const PodSeen> ClusterSeen::ViewPod(const json& object) {
  const json& metadata = base::FieldOf(object, "metadata");
  const std::string job = base::TextOf(base::FieldOf(metadata, "labels"), api::kJobNameLabel);
  return std::make_shared<PodSeen>(
      PodSeen{.job = base::TextOf(metadata, "namespace") + "/" + job,
              .uid = base::TextOf(metadata, "uid"),
              .running = base::TextOf(base::FieldOf(object, "status"), "phase") == "Running" &&
                         base::FieldOf(metadata, "deletionTimestamp").is_null()});
}

std::shared_ptr<const ClusterSeen::JobSeen> ClusterSeen::ViewJob(const json& object) {
  auto seen = std::make_shared<JobSeen>();
  const json& status = base::FieldOf(object, "status");
  for (const json& condition : base::ListOf(status, "conditions")) {
    seen->conditions[base::TextOf(condition, "type")] = base::TextOf(condition, "status") == "True";
  }
  seen->registered = base::TextOf(status, "registered");
  seen->status_bytes = status.dump().size();
  return seen;
}

void ClusterSeen::OnPod(const kube::ObjectKey& key, const std::shared_ptr<const PodSeen>& before,
                        const std::shared_ptr<const PodSeen>& now) {
  std::lock_guard lock(mutex_);
  Known& known = known_[now ? now->job : before->job];
  if (!now) {
    known.pods.erase(key.name);
    return;
  }
  if (!before || before->uid != now->uid) known.made.push_back(Clock::now());
  known.pods[key.name] = *now;
}

void ClusterSeen::OnJob(const kube::ObjectKey& key, const std::shared_ptr<const JobSeen>& now) {
  if (!now) return;
  std::lock_guard lock(mutex_);
  Known& known = known_[key.ToString()];
  known.job = *now;
  known.largest_status = std::max(known.largest_status, now->status_bytes);
  ++known.writes;
  for (const auto& [type, is_true] : now->conditions) {
    if (is_true) known.was_true.try_emplace(type, Clock::now());
  }
}

template <typename Value>
Value ClusterSeen::Of(const std::string& job, Value otherwise,
                      const std::function<Value(const Known&)>& get) const {
  std::lock_guard lock(mutex_);
  const auto found = known_.find(job);
  return found == known_.end() ? otherwise : get(found->second);
}

std::optional<Clock::time_point> ClusterSeen::PodsMade(const std::string& job, size_t n) const {
  using Time = std::optional<Clock::time_point>;
  return Of<Time>(job, std::nullopt, [n](const Known& known) {
    return known.made.size() < n ? Time() : Time(known.made[n - 1]);
  });
}

int ClusterSeen::PodsRunning(const std::string& job) const {
  return Of<int>(job, 0, [](const Known& known) {
    return static_cast<int>(std::count_if(known.pods.begin(), known.pods.end(),
                                          [](const auto& pod) { return pod.second.running; }));
  });
}

std::map<std::string, std::string> ClusterSeen::Running(const std::string& job) const {
  using Uids = std::map<std::string, std::string>;
  return Of<Uids>(job, {}, [](const Known& known) {
    Uids uids;
    for (const auto& [name, pod] : known.pods) {
      if (pod.running) uids[name] = pod.uid;
    }
    return uids;
  });
}

std::optional<Clock::time_point> ClusterSeen::WasTrue(const std::string& job,
                                                      const std::string& condition) const {
  using Time = std::optional<Clock::time_point>;
  return Of<Time>(job, std::nullopt, [&condition](const Known& known) {
    const auto found = known.was_true.find(condition);
    return found == known.was_true.end() ? Time() : Time(found->second);
  });
}

bool ClusterSeen::IsTrue(const std::string& job, const std::string& condition) const {
  return Of<bool>(job, false, [&condition](const Known& known) {
    const auto found = known.job.conditions.find(condition);
    return found != known.job.conditions.end() && found->second;
  });
}

std::string ClusterSeen::Registered(const std::string& job) const {
  return Of<std::string>(job, "", [](const Known& known) { return known.job.registered; });
}

size_t ClusterSeen::LargestStatus(const std::string& job) const {
  return Of<size_t>(job, 0, [](const Known& known) { return known.largest_status; });
}

int ClusterSeen::StatusWrites(const std::string& job) const {
  return Of<int>(job, 0, [](const Known& known) { return known.writes; });
}

}  // namespace hetero::bench
