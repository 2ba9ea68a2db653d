#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "hetero/v1/status.pb.h"
#include "operator/plan/head_target.h"
#include "operator/plan/observed.h"
#include "operator/reconcile/announcement_pacer.h"
#include "operator/reconcile/head_report.h"

namespace hetero::reconcile {

// What is known of one job's head. It has a lock of its own: neither a job of ten thousand members
// nor a head that talks all the time holds up another job. The job's streams are numbered, since
// each has callbacks that may come late: those of all but the newest are passed over. Safe from any
// thread.
class FollowedHead {
 public:
  FollowedHead(base::Clock& clock, std::string job_name, int32_t attempt)
      : clock_(clock), builder_(std::move(job_name), attempt) {}

  // The stream `serial` to `target` takes over; what earlier ones said still counts.
  void Begin(uint64_t serial, const plan::HeadTarget& target);
  // The job has grown or shrunk, with the same stream.
  void Resize(const plan::HeadTarget& target);

  struct News {
    // When to announce it; zero: now, none: an announcement on its way will tell it too.
    std::optional<base::Duration> announce_after;
    std::optional<base::Duration> check_lost_after;
  };
  News Heard(uint64_t serial, const v1::JobStatus& status);
  // The head has been told to stop its job, and has heard.
  void ToldToEnd(uint64_t serial);
  // It is being told which members are about to go; it does not know the call.
  void Warned(uint64_t serial, std::vector<plan::MemberNotice> notices);
  void TakesNoWarning(uint64_t serial);
  // These say whether there is something to announce now.
  bool CheckLost(uint64_t serial);
  bool AnnounceLate(uint64_t serial);

  struct End {
    bool was_connected = false;
    bool has_verdict = false;  // the head has said all
  };
  // None: not the newest stream.
  std::optional<End> Ended(uint64_t serial);

  plan::HeadReport report() const;
  bool connected() const;

 private:
  base::Clock& clock_;
  mutable base::Mutex mutex_;
  uint64_t serial_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t incarnation_ ABSL_GUARDED_BY(mutex_) = 0;  // of the process that is wanted; 0: not known
  HeadReportBuilder builder_ ABSL_GUARDED_BY(mutex_);
  AnnouncementPacer pacer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hetero::reconcile
