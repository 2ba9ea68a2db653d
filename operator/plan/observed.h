#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/hetero_training_job.h"
#include "api/job_status.h"
#include "api/manifest.h"
#include "api/price_sheet.h"
#include "base/clock.h"
#include "operator/children/pod_group.h"
#include "operator/children/requests.h"
#include "operator/plan/cost.h"
#include "operator/plan/observed_queue.h"

// What the planner sees of the cluster: the projections that the operator's stores keep. Plain
// values.
namespace hetero::plan {

// The job's own object.
struct ObservedJob {
  api::HeteroTrainingJob job;               // name, namespace, uid set even when the spec is wrong
  std::vector<api::FieldError> errors;      // why the spec cannot run
  std::vector<std::string> unknown_fields;  // of it, passed over
  bool pods_known = true;                   // however wrong it is, it says which pods there are
  api::JobStatus status;
  base::WallTime created;  // the object; 1970: not known
  std::string resource_version;
  int64_t generation = 0;
  bool deleting = false;
};

// The largest number of an attempt: what stands in labels and in the status was written by whoever
// had the right to, and one more must still fit.
inline constexpr int32_t kMaxAttempt = 1'000'000'000;

struct ObservedPod {
  std::string name;
  std::string name_space;
  std::string uid;
  std::string owner_uid;  // of the controller ownerReference, which decides whose the pod is
  bool labelled = false;  // the label job-uid says the same, so that a selector finds the pod
  std::string role;
  int32_t index = 0;
  int32_t attempt = 0;      // 1 to kMaxAttempt; 0: the label states no such number
  int64_t incarnation = 0;  // of its processes, as they tell the head; 0: none is stated
  std::string image;        // of the container `runtime`
  std::string node;         // empty: not scheduled
  std::optional<base::WallTime> bound;  // to the node; none: it has none, or that is not known
  std::string phase;                    // Pending, Running, Succeeded, Failed, Unknown
  base::WallTime created;
  std::optional<base::WallTime> deletion_time;   // Terminating; the time by which it should be gone
  std::optional<base::WallTime> deletion_asked;  // when it was told to end
  bool forced = false;  // deleted with no grace left: only finalizers still hold it
  bool ready = false;
  // Since when its container `runtime`, which once was ready and runs, fails the kubelet's probe;
  // none: it is ready, or never was.
  std::optional<base::WallTime> unready_since;

  // Why it does not run, from the conditions and the container states; empty: nothing wrong. Of a
  // forced one, the finalizers that hold it.
  std::string waiting_reason;  // Unschedulable, ImagePullBackOff, ErrImagePull,
                               // CreateContainerConfigError, Finalizers, ...
  std::string waiting_message;
  base::WallTime waiting_since;

  // The container `runtime`, whose state decides (sidecars may outlive it).
  enum class Runtime { kWaiting, kRunning, kTerminated };
  Runtime runtime = Runtime::kWaiting;
  int32_t exit_code = 0;
  int32_t signal = 0;
  std::string reason;   // OOMKilled, Error, Completed; or the pod's: Evicted, NodeLost, Preempting,
                        // Shutdown, ...
  std::string message;  // termination message, or the pod's
  std::optional<base::WallTime> finished;
  std::optional<base::WallTime> failed_by;  // the pod was Failed, whatever is known of a container

  children::Resources requests;  // where nodes have prices

  bool disrupted =
      false;  // condition DisruptionTarget is True (eviction by the API, preemption, drain, taint)

  // Ended badly: the runtime container with another code than 0, or the pod Failed before it ran.
  bool failed() const {
    return (runtime == Runtime::kTerminated && exit_code != 0) ||
           (runtime != Runtime::kTerminated && phase == "Failed");
  }
  bool succeeded() const { return runtime == Runtime::kTerminated && exit_code == 0; }
  bool ended() const { return failed() || succeeded(); }
};

// A Service, ConfigMap, NetworkPolicy or PodGroup.
struct ObservedObject {
  std::string name;
  std::string name_space;
  std::string uid;
  std::string owner_uid;  // of the controller ownerReference
  bool deleting = false;
  std::string cluster_ip;  // Service
  std::string ca_pem;      // ConfigMap: ca.crt
  // PodGroup
  children::GangApi gang_api = {};
  int32_t min_member = 0;
};

// What the job's gang can be told to.
struct ObservedGang {
  bool enabled = false;                     // the operator is set up for that kind of scheduler
  std::optional<children::GangApi> served;  // none: by the cluster, or not to this operator
};

// What a node bears that says that it is about to go.
struct NodeNotice {
  enum class Kind { kNone, kMayStay, kLeaving };
  Kind kind = Kind::kNone;
  std::string sign;  // "taint karpenter.sh/disrupted", for people
  bool operator==(const NodeNotice&) const = default;
};

struct ObservedNode {
  std::string name;
  bool ready = true;
  base::WallTime since;  // of the Ready condition's last transition
  NodeNotice notice;
  bool in_zone = false;                 // it says in which zone it is
  std::optional<api::NodePrice> price;  // none: no price sheet says
  children::Resources allocatable;      // of one with a price
};

// What a head is told of one member whose node is about to go.
struct MemberNotice {
  std::string role;
  int32_t index = 0;
  int64_t incarnation = 0;
  std::string sign;       // with the node's name
  bool may_stay = false;  // the node was only cordoned
  bool operator==(const MemberNotice&) const = default;
};

// What the head last said over its status stream, kept by the follower. It says nothing about other
// attempts.
struct HeadReport {
  enum class State { kUnknown, kWaiting, kRunning, kSucceeded, kFailed, kStopped };
  State state = State::kUnknown;
  bool connected = false;         // the stream is open now
  base::WallTime last_heard;      // any message
  base::WallTime silent_since;    // the same, or when this head's stream was first wanted
  base::WallTime last_step_time;  // when `step` last rose, or the state became Running
  int32_t attempt = 0;            // that the follower was told of
  int64_t head_incarnation = 0;   // the largest that a head of it said; 0: none did
  int64_t generation = 0;
  struct RoleMembers {
    int32_t desired = 0;
    int32_t registered = 0;
  };
  std::map<std::string, RoleMembers> roles;
  // What the head knows of a replica's process; of several ranks the one that is worst off.
  struct Member {
    int64_t incarnation = 0;
    bool connected = false;
    bool lost = false;  // given up by the head for a while, and not back
  };
  std::map<std::string, Member> members;  // "gpu-0"; nobody before it has joined
  struct Sizing {
    int32_t needed = 0;
    std::string reason;
    bool operator==(const Sizing&) const = default;
  };
  std::map<std::string, Sizing> sizing;  // CPU roles whose need has been measured
  std::string checkpoint_problem;        // empty: none
  std::string history;                   // for the next head, as it is; empty: none was given out
  int32_t script_restarts = 0;           // generations of the attempt that a failed script ended
  std::optional<api::FirstFailure> first_failure;  // the training may go on all the same
  bool told_to_end = false;                        // by us, and it has heard
  // Of the notices that the head has, whoever told it (FingerprintOf); 0: none.
  uint64_t notices_fingerprint = 0;
  struct Warned {  // by this process, whether the head has heard or not
    std::vector<MemberNotice> notices;
    base::WallTime at;
  };
  std::optional<Warned> warned;
  bool takes_no_warning = false;  // it is of a version that does not know the call
  std::optional<api::JobProgress> progress;
  std::vector<api::JobFinding> findings;  // at most api::kMostFindings, each rule and member once
  std::optional<api::Verdict> verdict;    // set with kSucceeded and kFailed
};

// The answer to an earlier create that failed, until it succeeds: what PodsCreated says.
struct CreateError {
  enum class Kind { kOther, kQuotaExceeded, kNameConflict };
  Kind kind = Kind::kOther;
  std::string message;  // the API's own words, with the object's name
};

// What slows down the filling of slots whose pods end soon. Kept by the process between passes: one
// that forgets it only tries sooner.
struct Backoff {
  struct Slot {
    int32_t short_lives = 0;  // in a row
    base::WallTime until;     // not filled again before
  };
  std::map<std::string, Slot> slots;              // "gpu-0"
  std::map<std::string, base::WallTime> avoided;  // nodes that rejected a pod, until when
};

// A pod that the store has let go of.
struct RemovedPod {
  std::shared_ptr<const ObservedPod> last;  // never null
  base::WallTime time;                      // when it was found gone
};

// What the job's pods have to be paid for (pod_lives.h).
struct ObservedLives {
  std::vector<PodLife> there;
  std::vector<PodLife> departed;  // in order of their going
  bool continuous = false;        // as of Sighting
};

// Everything about one job at one moment.
struct Observed {
  std::shared_ptr<const ObservedJob> job;
  std::vector<std::shared_ptr<const ObservedPod>> pods;  // owned by the job, of any attempt
  std::shared_ptr<const ObservedObject> service;         // null: not there
  std::shared_ptr<const ObservedObject> config_map;
  std::shared_ptr<const ObservedObject> network_policy;
  std::vector<std::shared_ptr<const ObservedWorkload>> workloads;  // owned by the job
  ObservedQueues queues;
  std::vector<std::shared_ptr<const ObservedObject>> pod_groups;  // owned by the job
  ObservedGang gang;
  std::map<std::string, ObservedNode>
      nodes;  // that hold pods of the job; unknown nodes are left out
  // Whether there is any node that says in which zone it is; none: nodes cannot be seen, or nobody
  // asks.
  std::optional<bool> zones;
  std::optional<HeadReport> head;  // none: no stream has been opened
  std::optional<CreateError> create_error;
  // Uids of pods counted as failures by this process: protects against a stale list that brings one
  // back.
  std::set<std::string> settled;
  Backoff backoff;
  std::optional<ObservedLives> lives;  // none: no account is kept
};

}  // namespace hetero::plan
