#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "runtime/head/job_record.h"
#include "runtime/insight/evidence.h"

// What rules read of a job (runtime/insight/evidence.h), from what the head knows of it. Pure.
namespace hetero::head {

// What one member had come to, over all processes that have held its place.
struct MemberTally {
  v1::Counters counters;
  std::vector<v1::OperatorCost> operator_costs;
  RankTotals rank;  // trainers
};

// The totals of a job at one moment: evidence of a window is what lies between two.
struct JobTally {
  double job_seconds = 0;  // since the job was created
  int64_t step = 0;        // completed steps of the job
  std::map<MemberKey, MemberTally> members;
};

JobTally TallyOf(const JobRecord& record, base::Instant now);

// Of the time since `begin` was taken, until `now`.
insight::Evidence EvidenceSince(const JobTally& begin, const JobRecord& record, base::Instant now);

// Of the whole training, which has ended.
insight::Evidence EvidenceOfTraining(const JobRecord& record, base::Instant now);

}  // namespace hetero::head
