#pragma once

#include <cstddef>

#include "hetero/v1/status.pb.h"
#include "runtime/head/job_record.h"
#include "runtime/insight/live/snapshot.h"

// The parts of the live page that are functions of the record (live_builder.h has the others). Each
// fills its own members of the snapshot.
namespace hetero::head {

inline constexpr size_t kMostLosses = 400;  // points of a curve
inline constexpr size_t kMostEvents = 100;  // the newest

void AddState(const JobRecord& record, const v1::JobStatus& status, live::Snapshot& snapshot);
// Steps, rates, waits, phases, the verdict.
void AddProgress(const JobRecord& record, const v1::JobStatus& status, live::Snapshot& snapshot);
// After AddProgress().
void AddDollars(const JobRecord& record, Moment now, live::Snapshot& snapshot);
void AddFindings(const v1::JobStatus& status, live::Snapshot& snapshot);
// After AddProgress().
void AddOperators(const JobRecord& record, live::Snapshot& snapshot);
void AddCurves(const JobRecord& record, live::Snapshot& snapshot);
void AddLives(const JobRecord& record, live::Snapshot& snapshot);
void AddEvents(const JobRecord& record, live::Snapshot& snapshot);
void AddLog(const JobRecord& record, live::Snapshot& snapshot);

}  // namespace hetero::head
