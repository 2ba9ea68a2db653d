#pragma once

#include <map>
#include <optional>
#include <vector>

#include "hetero/v1/status.pb.h"
#include "runtime/head/job_record.h"
#include "runtime/insight/sizing.h"

namespace hetero::head {

// Turns the members' counters, which only grow, into what Sizing asks for: rates of the latest few
// seconds. Pure but for what it remembers; not thread-safe.
class RoleSizer {
 public:
  // About once a second while the job runs. One entry per CPU role, or none while too little is
  // known.
  std::vector<v1::RoleSizing> Look(const JobRecord& record, base::Instant now);

 private:
  struct Work {  // of a CPU worker
    double busy_seconds = 0;
    int64_t samples = 0;
  };
  struct Steps {  // of a rank
    int64_t steps = 0;
    double seconds = 0, work = 0, all_reduce = 0, wait = 0;
  };
  static Steps StepsOf(const v1::Progress& progress);
  std::optional<double> TakeRate(const MemberKey& key, const MemberRecord& member);
  void TakeDemand(const JobRecord& record, base::Instant now);

  insight::Sizing sizing_;
  std::map<MemberKey, Work> work_;    // at the last rate
  std::map<MemberKey, Steps> steps_;  // at the beginning of the window
  int64_t samples_ = 0;               // likewise
  std::optional<base::Instant> window_began_;
  double demand_ = 0;  // of the window that just ended; 0: none did
  double data_wait_percent_ = 0;
};

}  // namespace hetero::head
