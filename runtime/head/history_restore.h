#pragma once

#include <cstdint>
#include <string>

#include "hetero/v1/history.pb.h"
#include "runtime/head/job_record.h"

// How a head takes up where another left off. What members tell themselves when they join again is
// theirs to tell: this adds only what they cannot know. Pure.
namespace hetero::head {

// The attempt that a head belongs to.
struct AttemptInfo {
  int32_t number = 1;
  base::WallTime began;  // when its first process was asked for
  std::string cause;     // empty: the first, or not known
};

// Enters into a record that has its job and `created` what `history` tells (default: nothing, this
// is the job's first head), and the attempt. A head that takes another's place within an attempt
// enters that one's loss.
void RestoreHistory(const v1::History& history, const AttemptInfo& attempt, Moment now,
                    JobRecord& record);

// A member dialled, and was without a head for `headless`: the loss of the head before began then,
// but never before that head wrote its history.
void DateHeadLoss(base::Duration headless, Moment now, JobRecord& record);
// All ranks work again.
void CloseHeadLoss(Moment now, JobRecord& record);

// What is known of the place that `member` takes, whose hello has come and who is in the record for
// the first time. False: a newer process than this one was in it before.
bool TakeUpPlace(const MemberKey& key, const v1::Identity& identity, bool ending, Moment now,
                 JobRecord& record, MemberRecord& member);

}  // namespace hetero::head
