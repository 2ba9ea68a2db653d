#pragma once

#include <deque>
#include <vector>

#include "runtime/head/event.h"
#include "runtime/head/evidence_builder.h"
#include "runtime/head/job_record.h"
#include "runtime/insight/rules/rule.h"

namespace hetero::head {

// Asks the rules again and again while a job trains, and once more of all of it when it has ended,
// and keeps in the record what they find: JobRecord::findings, what holds first, then causes before
// what they explain, then by cost. What a rule finds of one member is one finding, however often:
// its seconds and dollars grow while it holds. A plain object; not thread-safe.
class FindingWatch {
 public:
  // Those of the heads before this one are in `record` already, and hold when they are found again.
  explicit FindingWatch(const api::Spec& spec);

  // While the job trains, about once a second. A note for each finding that is new.
  std::vector<Note> Look(Moment now, JobRecord& record);
  // When it has ended: what holds is what all of the training shows. Likewise.
  std::vector<Note> Close(Moment now, JobRecord& record);

 private:
  // `share`: of what the findings cost, how much is not counted yet.
  static std::vector<Note> Take(const std::vector<insight::Finding>& found, double share,
                                Moment now, JobRecord& record);

  insight::Settings settings_;
  std::deque<JobTally> tallies_;  // of the window, the oldest first
  base::Instant looked_at_{};
  base::Instant tallied_at_{};
};

}  // namespace hetero::head
