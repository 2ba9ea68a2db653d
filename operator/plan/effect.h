#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/job_status.h"
#include "operator/children/placement.h"
#include "operator/children/pod_group.h"
#include "operator/plan/observed.h"
#include "operator/plan/observed_queue.h"

// What a plan asks for, as small values: what is to be created is told apart, and rendered only
// when it is sent, since the objects of a job of 10,000 pods would take 250 MB at once.
// operator/reconcile carries it out.
namespace hetero::plan {

// The job's children, but for the Secret, which the operator may not read.
enum class ChildKind { kPod, kService, kConfigMap, kNetworkPolicy, kWorkload, kPodGroup };

// The head's Service or the NetworkPolicy, as the job's spec has it.
struct CreateChild {
  ChildKind kind = ChildKind::kService;
  std::string name;
};

// What all pods that one plan creates have in common.
struct PodOrigin {
  int32_t attempt = 0;
  int64_t incarnation = 0;   // ns since 1970
  std::string head_address;  // "<ClusterIP>:7070"
  std::vector<std::string> avoided_nodes;
  api::AttemptImages images;
  std::optional<children::GangMembership> gang;  // none: nobody places them together
  // For the head alone.
  int64_t job_created = 0;    // ns since 1970
  std::string history;        // status.history; empty: there is none
  std::string attempt_cause;  // empty: the first attempt, or not known
};

// The pod of one slot.
struct CreatePod {
  int32_t role = 0;  // its place in spec.roles
  int32_t index = 0;
  std::shared_ptr<const PodOrigin> origin;               // never null
  std::shared_ptr<const children::Placement> placement;  // null: of a job in no queue
};

// What a Workload claims of the quota of a queue.
struct WorkloadClaim {
  struct PodSet {
    int32_t role = 0;  // its place in spec.roles
    int32_t count = 0;
  };
  std::string name;
  std::string queue;
  std::string priority_class;  // empty: none
  int32_t priority = 0;        // of that class
  std::string spec_hash;       // of the spec whose pods it is for
  std::vector<PodSet> pod_sets;
};
struct CreateWorkload {
  std::shared_ptr<const WorkloadClaim> claim;  // never null
};

// The attempt's gang, told to its scheduler.
struct CreatePodGroup {
  struct Role {
    int32_t role = 0;  // its place in spec.roles
    int32_t count = 0;
  };
  children::GangMembership gang;
  std::vector<Role> roles;
};

// Takes over the Workload of the claim's name, which others made for the job: one that nobody owns,
// and that asks for what the job's pods do.
struct AdoptWorkload {
  std::shared_ptr<const WorkloadClaim> claim;  // never null
};

// Changes the status of a Workload, unless it has changed since it was read.
struct UpdateWorkload {
  std::shared_ptr<const ObservedWorkload> read;  // never null
  std::vector<WorkloadCondition> conditions;     // in the place of those of their types
  bool release = false;                          // gives the quota back
};

// The authority and the leaves of the job: the Secret, then the ConfigMap, which thus proves that
// the Secret exists. With network.tls Disabled the ConfigMap alone.
struct CreateTrust {};

// Only the object `uid`; none if another one has its name now.
struct DeleteChild {
  ChildKind kind = ChildKind::kPod;
  std::string name;
  std::string uid;
  std::optional<int64_t> grace_seconds = {};  // 0 forces; none: as the pod says
  children::GangApi gang_api = {};            // of kPodGroup
};

struct DeletePods {};  // all that bear the job's label in its namespace, one call
struct DeleteSecret {};
struct DeleteJob {};  // the job's own object, background propagation

// Tells the head that a member's process is gone.
struct ReportExit {
  std::string role;
  int32_t index = 0;
  int64_t incarnation = 0;
  int32_t exit_code = 0;
  int32_t signal = 0;
  std::string message;
  bool replaced = false;  // another process will take its place
};

// Asks the head to end the job: all ranks stop after the same step, and leave a checkpoint of it.
// A head that the job's failure is told to writes the report of it.
struct StopHead {
  std::string failure = {};  // the reason of the condition Failed; empty: the job has not failed
  std::string reason;        // for people
};

// Tells the head which members are about to go: all that are, no more and no less.
struct WarnHead {
  std::vector<MemberNotice> notices;
};

using Effect = std::variant<CreateChild, CreatePod, CreateTrust, CreateWorkload, AdoptWorkload,
                            CreatePodGroup, UpdateWorkload, DeleteChild, DeletePods, DeleteSecret,
                            DeleteJob, ReportExit, StopHead, WarnHead>;

// Effects that run in parallel.
using Stage = std::vector<Effect>;

}  // namespace hetero::plan
