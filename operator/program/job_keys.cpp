#include "operator/program/job_keys.h"

#include <set>
#include <string_view>

#include "operator/children/names.h"

namespace hetero::program {
namespace {

// What names.h puts behind a job's name.
std::string EndingOf(std::string (*name)(const api::Metadata&)) { return name(api::Metadata()); }

std::string WithoutEnding(const kube::ObjectKey& key, std::string_view ending) {
  if (key.name.size() <= ending.size() || !key.name.ends_with(ending)) return "";
  const std::string job = key.name.substr(0, key.name.size() - ending.size());
  return kube::ObjectKey{.name_space = key.name_space, .name = job}.ToString();
}

}  // namespace

std::string JobOfPod(const kube::ObjectKey& key, const plan::ObservedPod& pod) {
  return WithoutEnding(key, children::PodName(api::Metadata(), pod.role, pod.index));
}

std::string JobOfService(const kube::ObjectKey& key) {
  return WithoutEnding(key, EndingOf(children::ServiceName));
}

std::string JobOfConfigMap(const kube::ObjectKey& key) {
  return WithoutEnding(key, EndingOf(children::ConfigMapName));
}

std::string JobOfNetworkPolicy(const kube::ObjectKey& key) {
  return WithoutEnding(key, EndingOf(children::NetworkPolicyName));
}

std::string JobOfWorkload(const kube::ObjectKey& key, const plan::ObservedWorkload& workload) {
  if (workload.job.empty()) return "";
  return kube::ObjectKey{.name_space = key.name_space, .name = workload.job}.ToString();
}

std::string JobOfPodGroup(const kube::ObjectKey& key) {
  const size_t attempt = key.name.find_last_not_of("0123456789") + 1;
  return WithoutEnding({key.name_space, key.name.substr(0, attempt)}, children::kPodGroupInfix);
}

std::vector<std::string> JobsOnNode(const kube::Store<plan::ObservedPod>& pods,
                                    const std::string& node) {
  std::set<std::string> jobs;
  for (const kube::ObjectKey& key : pods.Keys()) {
    const auto pod = pods.Get(key);
    if (pod != nullptr && pod->node == node) jobs.insert(JobOfPod(key, *pod));
  }
  jobs.erase("");
  return {jobs.begin(), jobs.end()};
}

}  // namespace hetero::program
