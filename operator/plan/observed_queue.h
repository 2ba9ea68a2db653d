#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

// What the planner sees of Kueue (https://kueue.sigs.k8s.io, API kueue.x-k8s.io/v1beta2). Plain
// values.
namespace hetero::plan {

struct WorkloadCondition {
  std::string type;    // QuotaReserved, Admitted, Evicted, Finished, ...
  std::string status;  // True, False, Unknown
  std::string reason;
  std::string message;
  base::WallTime last_transition_time;
  int64_t observed_generation = 0;
  bool operator==(const WorkloadCondition&) const = default;
};

// What one pod set was given with the admission.
struct PodSetAssignment {
  std::string name;  // of the pod set: a role's
  std::vector<std::string> flavors;
  bool topology = false;  // its pods get their places one by one, behind a scheduling gate
};

// What an admission check, such as one that makes nodes, adds to the pods of a set.
struct PodSetUpdate {
  std::string name;  // of the pod set
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::map<std::string, std::string> node_selector;
  std::vector<std::string> tolerations;  // each as compact JSON
};

struct AdmissionCheck {
  std::string name;
  std::string state;  // Pending, Ready, Retry, Rejected
  std::string message;
  std::vector<PodSetUpdate> updates;
};

// A Workload that the job owns: its claim on the quota of a queue.
struct ObservedWorkload {
  std::string name;
  std::string name_space;
  std::string uid;
  std::string owner_uid;  // of the controller ownerReference
  std::string job;        // by its label
  std::string resource_version;
  int64_t generation = 0;
  bool deleting = false;
  bool active = true;  // false: somebody has taken it out of the queue
  std::string queue;
  std::string priority_class;  // empty: none
  int32_t priority = 0;
  std::string spec_hash;                    // of the spec whose pods it is for; empty: not known
  std::map<std::string, int32_t> pod_sets;  // counts by name
  std::vector<WorkloadCondition> conditions;
  bool holds_quota = false;  // it has an admission, whatever its conditions say
  std::vector<PodSetAssignment> assignments;
  std::vector<AdmissionCheck> checks;

  // Null: there is none of that type.
  const WorkloadCondition* Find(const std::string& type) const {
    for (const WorkloadCondition& condition : conditions) {
      if (condition.type == type) return &condition;
    }
    return nullptr;
  }
  bool Is(const std::string& type) const {
    const WorkloadCondition* condition = Find(type);
    return condition != nullptr && condition->status == "True";
  }
  // Pods that its set of that name may have.
  int32_t CountOf(const std::string& pod_set) const {
    const auto found = pod_sets.find(pod_set);
    return found == pod_sets.end() ? 0 : found->second;
  }
  bool evicted() const { return Is("Evicted") || !active; }
  // Kueue has freed the quota of one that is Finished, whoever said so.
  bool admitted() const {
    return Is("Admitted") && holds_quota && !evicted() && !deleting && !Is("Finished");
  }
};

// A kind of nodes that a queue hands out quota of.
struct ObservedFlavor {
  std::map<std::string, std::string> node_labels;
  std::vector<std::string> tolerations;  // each as compact JSON
};

// Kueue, as far as the job has to do with it.
struct ObservedQueues {
  // kOff: this operator is not set up for it. kMissing: the cluster has no such API, not its
  // version, or not for this operator.
  enum class Support { kOff, kMissing, kServed };
  Support support = Support::kOff;
  std::map<std::string, ObservedFlavor> flavors;  // those that the job's Workloads name; unknown
                                                  // ones are left out
  std::map<std::string, int32_t> priorities;      // by WorkloadPriorityClass, likewise
};

}  // namespace hetero::plan
