#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "hetero/v1/status.pb.h"
#include "runtime/head/job_record.h"
#include "runtime/head/outbox.h"

namespace hetero::head {

// How a job ends. It begins once, with the first reason: whatever fails afterwards only follows
// from it. Members are told to stop and have a grace for their last word; then the record says how
// the job ended. Not thread-safe.
class JobEnding {
 public:
  // A trainer may have a checkpoint to write. What CPU workers still say are figures alone.
  struct Graces {
    base::Duration trainers{};
    base::Duration workers{};
  };
  JobEnding(Graces graces, JobRecord& record, Outbox& outbox)
      : graces_(graces), record_(record), outbox_(outbox) {}

  bool begun() const { return ending_.has_value(); }

  // Each does nothing once the ending has begun. An empty `member`: the job itself.
  void Fail(const std::string& member, const std::string& message, base::Instant now);
  // The same, where all that is known is what `member` said last: a peer whose death it only
  // noticed may be named later (BlameDead).
  void FailByLastWord(const std::string& member, const std::string& message, base::Instant now);
  void Stop(const std::string& reason, base::Instant now);
  void Succeed(base::Instant now);

  // `member` died without a last word. When another's last word has failed the job, this death was
  // the cause; otherwise nothing changes.
  void BlameDead(const std::string& member, const std::string& message);

  // Tells `member` to stop, unless it cannot hear that or has said its last word.
  void SendStop(const MemberRecord& member, const std::string& reason);

  // Closes the record when the ending has begun and every member has said its last word, or its
  // grace is over. Call it no more then.
  void Conclude(Moment now);

 private:
  struct Ending {
    v1::JobStatus::State state;
    base::Instant began;
  };
  void Begin(v1::JobStatus::State state, const std::string& reason, base::Instant now);
  // Whether nobody is waited for any more.
  bool Settled(base::Instant now) const;

  const Graces graces_;
  JobRecord& record_;
  Outbox& outbox_;
  std::optional<Ending> ending_;
  std::optional<std::string> failed_by_last_word_;  // whose
};

// Whether every rank has left with the result. False for a job without ranks.
bool AllRanksFinished(const JobRecord& record);

}  // namespace hetero::head
