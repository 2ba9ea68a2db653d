#pragma once

#include <string>
#include <vector>

#include "operator/plan/observed.h"
#include "operator/plan/plan.h"

namespace hetero::reconcile {

// A job's story for whoever reads the operator's log, one line for each thing that matters: its
// start, what failed, restarts, and how it ended. Called after `after` was written.
void LogJobChange(const std::string& key, const plan::ObservedJob& before,
                  const api::JobStatus& after, const std::vector<plan::Event>& events);

// "48s", "3m07s", "2h05m".
std::string ShortDuration(base::Duration duration);

}  // namespace hetero::reconcile
