#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "hetero/v1/status.pb.h"
#include "runtime/head/job_record.h"
#include "runtime/head/outbox.h"
#include "runtime/head/role_plan.h"
#include "runtime/head/script_agreement.h"

namespace hetero::head {

// What the head is told of machines that are about to go (status.proto, Warn), and the checkpoint
// that it has written then, if the job has any: rank 0 is told to, scripts agree on one. Keeps the
// record's notices, which the roster goes by, and its disruptions. What is told again, to this head
// or the next, is no second disruption; what was taken back and comes again is. Not thread-safe.
class Notices {
 public:
  static constexpr size_t kMostDisruptions = 64;  // the latest are kept
  // Before a checkpoint that could not be written is asked for again.
  static constexpr base::Duration kAskAgain = std::chrono::seconds(10);

  Notices(const RolePlan& plan, JobRecord& record, Outbox& outbox)
      : plan_(plan), record_(record), outbox_(outbox) {}

  // Takes the place of all that was told before. Those of members that the job does not have are
  // passed over.
  void Take(const v1::Notices& notices, Moment now);
  // After each event: whether ranks have told of the checkpoint, be it that of the job's end.
  void Settle(Moment now);
  // After each event of a job that goes on: asks for the checkpoint, until it is written.
  void Ask(ScriptAgreement& agreement, Moment now);

 private:
  struct Asked {
    std::optional<StreamId> stream;  // of rank 0
    int64_t generation = 0;
    base::Instant at{};
    int64_t committed = 0;  // by scripts before that
  };

  bool Concerns(const v1::Notice& notice) const;
  // The disruption that an earlier head has entered for it; null: none.
  Disruption* Known(const v1::Notice& notice);
  void Begin(const v1::Notice& notice, Moment now);
  bool AwaitsCheckpoint() const;
  void AskRankZero(Moment now);
  void AskScripts(ScriptAgreement& agreement, Moment now);
  // The training is saved as it was after `step` steps.
  void Saved(int64_t step, Moment now);

  const RolePlan& plan_;
  JobRecord& record_;
  Outbox& outbox_;
  bool was_told_ = false;  // this head, of whatever
  bool wanted_ = false;    // a checkpoint, by notices that this head was told
  std::optional<Asked> asked_;
};

}  // namespace hetero::head
