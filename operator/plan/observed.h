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
#include "base/clock.h"

// What the planner sees of the cluster: the projections that the operator's stores keep. Plain
// values.
namespace hetero::plan {

// The job's own object.
struct ObservedJob {
  api::HeteroTrainingJob job;           // name, namespace, uid set even when the spec is wrong
  std::vector<api::FieldError> errors;  // why the spec cannot run
  api::JobStatus status;
  base::WallTime created;  // the object; 1970: not known
  std::string resource_version;
  int64_t generation = 0;
  bool deleting = false;
};

struct ObservedPod {
  std::string name;
  std::string uid;
  std::string owner_uid;  // of the controller ownerReference
  std::string job_uid;    // label
  std::string role;
  int32_t index = 0;
  int32_t attempt = 0;
  int64_t incarnation = 0;  // of its processes, as they tell the head; 0: none is stated
  std::string node;         // empty: not scheduled
  std::string phase;        // Pending, Running, Succeeded, Failed, Unknown
  base::WallTime created;
  std::optional<base::WallTime> deletion_time;  // Terminating; the time by which it should be gone
  bool ready = false;

  // Why it does not run, from the conditions and the container states; empty: nothing wrong.
  std::string waiting_reason;  // Unschedulable, ImagePullBackOff, ErrImagePull,
                               // CreateContainerConfigError, ...
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

// A Service, ConfigMap or NetworkPolicy.
struct ObservedObject {
  std::string name;
  std::string uid;
  std::string owner_uid;
  std::string job_uid;
  bool deleting = false;
  std::string cluster_ip;  // Service
  std::string ca_pem;      // ConfigMap: ca.crt
};

struct ObservedNode {
  std::string name;
  bool ready = true;
  base::WallTime since;  // of the Ready condition's last transition
};

// What the head last said over its status stream, kept by the follower. It says nothing about other
// attempts.
struct HeadReport {
  enum class State { kUnknown, kWaiting, kRunning, kSucceeded, kFailed, kStopped };
  State state = State::kUnknown;
  bool connected = false;         // the stream is open now
  base::WallTime last_heard;      // any message
  base::WallTime last_step_time;  // when `step` last rose, or the state became Running
  int32_t attempt = 0;            // that the follower was told of
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
  bool told_to_end = false;              // by us, and it has heard
  std::optional<api::JobProgress> progress;
  std::optional<api::Verdict> verdict;  // set with kSucceeded and kFailed
};

// The answer to an earlier create that failed, until it succeeds: what PodsCreated says.
struct CreateError {
  enum class Kind { kOther, kQuotaExceeded, kNameConflict };
  Kind kind = Kind::kOther;
  std::string message;  // the API's own words, with the object's name
};

// Everything about one job at one moment.
struct Observed {
  std::shared_ptr<const ObservedJob> job;
  std::vector<std::shared_ptr<const ObservedPod>> pods;  // with the job's uid as label, any attempt
  std::shared_ptr<const ObservedObject> service;         // null: not there
  std::shared_ptr<const ObservedObject> config_map;
  std::shared_ptr<const ObservedObject> network_policy;
  std::map<std::string, ObservedNode>
      nodes;                       // that hold pods of the job; unknown nodes are left out
  std::optional<HeadReport> head;  // none: no stream has been opened
  std::optional<CreateError> create_error;
  // Uids of pods counted as failures by this process: protects against a stale list that brings one
  // back.
  std::set<std::string> settled;
};

}  // namespace hetero::plan
