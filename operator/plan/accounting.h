#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// How old status.cost of a job that costs money may become before it is written for its own sake.
inline constexpr base::Duration kCostPeriod = std::chrono::minutes(5);

// Whether an account of the job is kept: something of it may have a price.
bool KeepsAccount(const ObservedJob& job, const children::Settings& settings);

// Brings status.cost up to date (cost.h). For the steps that go by it; DescribeCost() follows.
void KeepAccount(Pass& pass);

// The figures of status.cost, and whether it is written for its own sake: when what was running has
// gone, since only this process has seen how, when nothing runs any more, and seldom while
// something does. Everything else waits for a write that happens anyway. Comes last.
void DescribeCost(Pass& pass);

// runPolicy.maxDollars, by what has been spent until now.
void CheckBudget(Pass& pass);

}  // namespace hetero::plan
