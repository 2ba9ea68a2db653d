#pragma once

#include <cstdint>
#include <vector>

#include "hetero/v1/history.pb.h"
#include "hetero/v1/membership.pb.h"
#include "runtime/insight/report.h"

// Sums over the processes that have held one member's place, one after the other. Pure.
namespace hetero::head {

// No counter becomes larger, whatever is added.
inline constexpr int64_t kMostCounted = int64_t{1} << 61;

// `to` becomes the sum; of peaks the larger one.
void AddCounters(const v1::Counters& from, v1::Counters& to);
// By entry of the pipeline.
void AddCosts(const std::vector<v1::OperatorCost>& from, std::vector<v1::OperatorCost>& to);

// Where a rank's time went, and what the job did meanwhile.
struct RankTotals {
  double train_seconds = 0;
  insight::PhaseSeconds phases;
  insight::WaitSeconds waits;
  double data_wait_percent = 0;  // of train_seconds
  int64_t steps = 0;             // of the job, while the rank took part
  int64_t samples = 0;           // likewise
  int64_t tickets_reissued = 0;
  int64_t duplicates_dropped = 0;
  int64_t skipped_steps = 0;
};

RankTotals TotalsOf(const v1::Progress& progress);
void AddTotals(const RankTotals& from, RankTotals& to);

// From the wire to the report's types, and sums of these.
insight::PhaseSeconds MakePhases(const v1::PhaseSeconds& phases);
insight::WaitSeconds MakeWaits(const v1::WaitSeconds& waits);
void AddPhases(const insight::PhaseSeconds& from, insight::PhaseSeconds& to);

// For History, in the order of the wire's fields; absent values are 0.
v1::RankHistory ToHistory(const RankTotals& totals);
RankTotals FromHistory(const v1::RankHistory& history);

}  // namespace hetero::head
