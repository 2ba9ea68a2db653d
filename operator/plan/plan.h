#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/job_status.h"
#include "base/clock.h"
#include "operator/children/settings.h"
#include "operator/plan/observed.h"

// The operator's mind: from what is seen to what is to be done. No I/O and no clock but the
// parameter.
namespace hetero::plan {

// One thing to do, in the order of Plan::effects' stages; those of one stage run in parallel.
struct Effect {
  enum class Kind {
    kCreate,       // `object`
    kCreateTrust,  // authority and leafs of the job: Secret, then ConfigMap (which thus proves the
                   // Secret exists); with network.tls Disabled the ConfigMap alone
    kDelete,       // `resource`, `name`, only the object `uid`; `grace_seconds` 0 forces
    kDeletePods,   // all pods of the job, one call
    kDeleteSecret,
    kDeleteJob,   // the job's own object (TTL), background propagation
    kReportExit,  // tell the head that a member's process is gone
  };
  enum class Resource { kPod, kService, kConfigMap, kNetworkPolicy };
  Kind kind = Kind::kCreate;
  Resource resource = Resource::kPod;
  std::string name;
  std::string uid;
  std::optional<int64_t> grace_seconds;
  nlohmann::json object;  // kCreate
  // kReportExit
  std::string role;
  int32_t index = 0;
  int64_t incarnation = 0;
  int32_t exit_code = 0;
  int32_t signal = 0;
  std::string message;
  bool replaced = false;
};

struct Event {
  bool warning = false;
  std::string reason;  // CamelCase
  std::string action;
  std::string note;
};

// Whose status stream is to be open.
struct HeadTarget {
  std::string address;  // "10.96.0.7:7071"
  std::string job_uid;
  std::string ca_pem;  // empty: plain text
  int32_t attempt = 0;
  std::string pod_uid;  // of the head's pod: another one is dialled again at once
  bool operator==(const HeadTarget&) const = default;
};

// What to do now. The executor writes `status` first, guarded by the resourceVersion that was read,
// and carries out the effects only when that succeeded: whatever an effect relies on (a failure
// counted, a verdict kept, an attempt raised) has been stored before it, so a crash between any two
// calls loses and repeats nothing.
struct Plan {
  api::JobStatus status;
  bool write_status = false;  // it differs from the one read
  // More than counts, progress and the wording of conditions differ: do not wait for the 5 s of
  // those. No effect relies on a write that is not urgent.
  bool status_is_urgent = false;
  std::vector<std::vector<Effect>>
      stages;                        // one after another; the next only when all before succeeded
  std::vector<Event> events;         // only after the status write
  std::optional<HeadTarget> follow;  // none: no stream
  std::optional<base::Duration> requeue_after;
  std::vector<std::string> settled;  // uids to remember as counted

  bool idle() const { return !write_status && stages.empty(); }
};

// Deleted jobs and jobs managed by somebody else give an empty plan.
Plan MakePlan(const Observed& observed, const children::Settings& settings, base::WallTime now);

}  // namespace hetero::plan
