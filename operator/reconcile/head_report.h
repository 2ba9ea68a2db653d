#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "hetero/v1/status.pb.h"
#include "operator/plan/observed.h"

namespace hetero::reconcile {

// One head's words as the planner reads them. Pure but for its own memory; not thread-safe.
class HeadReportBuilder {
 public:
  // How long the head has given a process up before it is called lost. The head has already waited
  // for memberTimeoutSeconds; this is for the end of its pod, which tells more, to be seen first.
  static constexpr base::Duration kLostAfter = std::chrono::seconds(3);

  // `job_name` stands before the member in the name of the pod that failed first.
  HeadReportBuilder(std::string job_name, int32_t attempt);

  // True when the state, the lost members, the sizing or the checkpoints' trouble changed: worth
  // telling at once.
  bool Heard(const v1::JobStatus& status, base::Instant now, base::WallTime wall_now);
  // Time alone may make a member that was given up a lost one; true when it did.
  bool UpdateLost(base::Instant now);
  // Until then; none: nobody has been given up.
  std::optional<base::Duration> UntilLost(base::Instant now) const;
  void Disconnected() { report_.connected = false; }
  void ToldToEnd() { report_.told_to_end = true; }

  const plan::HeadReport& report() const { return report_; }

 private:
  void ReadProgress(const v1::JobStatus& status, base::WallTime wall_now);
  bool ReadAdvice(const v1::JobStatus& status);
  void ReadMembers(const v1::JobStatus& status, base::Instant now);
  api::Verdict ReadVerdict(const v1::JobStatus& status) const;

  const std::string job_name_;
  plan::HeadReport report_;
  struct GivenUp {
    int64_t incarnation = 0;
    base::Instant since;
  };
  std::map<std::string, GivenUp> given_up_;  // by member
};

}  // namespace hetero::reconcile
