#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "hetero/v1/status.pb.h"
#include "operator/plan/observed.h"

namespace hetero::reconcile {

// One head's words as the planner reads them, no more of them than a job may have members and a
// status may hold. Pure but for its own memory; not thread-safe.
class HeadReportBuilder {
 public:
  // How long the head has given a process up before it is called lost. The head has already waited
  // for memberTimeoutSeconds; this is for the end of its pod, which tells more, to be seen first.
  static constexpr base::Duration kLostAfter = std::chrono::seconds(3);

  // `job_name` stands before the member in the name of the pod that failed first.
  HeadReportBuilder(std::string job_name, int32_t attempt);

  // The job's roles, and the most replicas that each may have; before the first call nobody is
  // known. What a head says of others is passed over.
  void KnowReplicas(std::map<std::string, int32_t> replicas) { replicas_ = std::move(replicas); }
  // From now on another head is followed, or the same one again: its silence begins.
  void Follow(base::WallTime wall_now) {
    report_.silent_since = wall_now;
    report_.told_to_end = false;
    report_.notices_fingerprint = 0;
    report_.warned.reset();
    report_.takes_no_warning = false;
  }

  // How old the figures of findings may be while the training runs: whoever reads them needs no
  // newer ones, and each change of them is a write.
  static constexpr base::Duration kFindingsPeriod = std::chrono::minutes(1);

  // True when the state, the lost members, the sizing, the checkpoints' trouble, the number of
  // scripts that failed or what is found changed: worth telling at once.
  bool Heard(const v1::JobStatus& status, base::Instant now, base::WallTime wall_now);
  // The head lives, and there is nothing new.
  void HeardUnchanged(base::WallTime wall_now) {
    report_.last_heard = report_.silent_since = wall_now;
  }
  // Time alone may make a member that was given up a lost one; true when it did.
  bool UpdateLost(base::Instant now);
  // Until then; none: nobody has been given up.
  std::optional<base::Duration> UntilLost(base::Instant now) const;
  void Disconnected() { report_.connected = false; }
  void ToldToEnd() { report_.told_to_end = true; }
  void Warned(std::vector<plan::MemberNotice> notices, base::WallTime wall_now) {
    report_.warned = {.notices = std::move(notices), .at = wall_now};
  }
  void TakesNoWarning() { report_.takes_no_warning = true; }

  const plan::HeadReport& report() const { return report_; }

 private:
  void ReadProgress(const v1::JobStatus& status, base::WallTime wall_now);
  bool ReadAdvice(const v1::JobStatus& status);
  bool ReadFindings(const v1::JobStatus& status, base::Instant now);
  void ReadMembers(const v1::JobStatus& status, base::Instant now);
  std::optional<api::FirstFailure> ReadFailure(const v1::JobStatus& status) const;
  api::Verdict ReadVerdict(const v1::JobStatus& status) const;
  bool IsMember(const v1::MemberStatus& member) const;

  const std::string job_name_;
  std::map<std::string, int32_t> replicas_;
  plan::HeadReport report_;
  base::Instant findings_read_{};
  struct GivenUp {
    int64_t incarnation = 0;
    base::Instant since;
  };
  std::map<std::string, GivenUp> given_up_;  // by member
};

}  // namespace hetero::reconcile
