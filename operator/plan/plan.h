#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/job_status.h"
#include "base/clock.h"
#include "operator/plan/effect.h"
#include "operator/plan/head_target.h"
#include "operator/plan/observed.h"

namespace hetero::plan {

struct Event {
  bool warning = false;
  std::string reason;  // CamelCase
  std::string action;
  std::string note;
};

// What to do now. The executor writes `status` first, guarded by the resourceVersion that was read,
// and carries out the effects only when that succeeded: whatever an effect relies on (a failure
// counted, a verdict kept, an attempt raised) has been stored before it, so a crash between any two
// calls loses and repeats nothing.
struct Plan {
  api::JobStatus status;
  bool write_status = false;  // it differs from the one read
  // More than counts, progress, findings and the wording of conditions differ: do not wait for the
  // 5 s of those. No effect relies on a write that is not urgent.
  bool status_is_urgent = false;
  std::vector<Stage> stages;         // one after another; the next only when all before succeeded
  std::vector<Event> events;         // only after the status write
  std::optional<HeadTarget> follow;  // none: no stream
  std::optional<base::Duration> requeue_after;
  std::vector<std::string> settled;  // uids to remember as counted
  Backoff backoff;                   // to remember, once the status is written

  bool idle() const { return !write_status && stages.empty(); }
};

}  // namespace hetero::plan
