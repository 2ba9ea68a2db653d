#include "runtime/local/ignored_fields.h"

#include "absl/strings/str_cat.h"

namespace hetero::local {
namespace {

// Nobody evicts or preempts a process, and what killed one for its memory is not told.
bool NeverMatches(const api::FailureRule& rule) { return rule.on_reason.has_value(); }

}  // namespace

std::vector<std::string> IgnoredFields(const api::HeteroTrainingJob& job) {
  std::vector<std::string> ignored;
  const auto add = [&ignored](bool set, const std::string& path) {
    if (set) ignored.push_back("spec." + path);
  };
  for (size_t i = 0; i < job.spec.storage.size(); ++i) {
    add(job.spec.storage[i].secret_ref.has_value(), absl::StrCat("storage[", i, "].secretRef"));
  }
  for (size_t i = 0; i < job.spec.roles.size(); ++i) {
    const api::Role& role = job.spec.roles[i];
    for (size_t k = 0; k < role.failure_rules.size(); ++k) {
      add(NeverMatches(role.failure_rules[k]),
          absl::StrCat("roles[", i, "].failureRules[", k, "].onReason"));
    }
    add(role.capacity.has_value(), absl::StrCat("roles[", i, "].capacity"));
    add(!role.pod_template.empty(), absl::StrCat("roles[", i, "].template"));
  }
  const api::RunPolicy& policy = job.spec.run_policy;
  add(policy.suspend, "runPolicy.suspend");
  add(!job.spec.managed_by.empty(), "managedBy");
  add(!policy.managed_by.empty(), "runPolicy.managedBy");
  add(!policy.max_dollars.empty(), "runPolicy.maxDollars");
  add(policy.max_wait_seconds.has_value(), "runPolicy.maxWaitSeconds");
  add(policy.clean_pod_policy != api::CleanPodPolicy::kAll, "runPolicy.cleanPodPolicy");
  add(policy.ttl_seconds_after_finished.has_value(), "runPolicy.ttlSecondsAfterFinished");
  add(job.spec.network.network_policy != api::Switch::kEnabled, "network.networkPolicy");
  add(job.spec.network.tls != api::Switch::kEnabled, "network.tls");
  add(job.spec.placement.has_value(), "placement");
  if (const auto& scheduling = job.spec.scheduling; scheduling.has_value()) {
    add(!scheduling->elastic_priority_class.empty(), "scheduling.elasticPriorityClass");
    add(scheduling->gang != api::GangScheduler::kNone, "scheduling.gang");
    add(!scheduling->queue.empty(), "scheduling.queue");
  }
  return ignored;
}

api::HeteroTrainingJob WithoutSecrets(api::HeteroTrainingJob job) {
  for (api::StorageAccess& access : job.spec.storage) access.secret_ref.reset();
  return job;
}

}  // namespace hetero::local
