#pragma once

#include "base/clock.h"
#include "operator/children/settings.h"
#include "operator/plan/observed.h"
#include "operator/plan/plan.h"

// The operator's mind: from what is seen to what is to be done. No I/O and no clock but the
// parameter.
namespace hetero::plan {

// Deleted jobs and jobs managed by somebody else give an empty plan.
Plan MakePlan(const Observed& observed, const children::Settings& settings, base::WallTime now);

}  // namespace hetero::plan
