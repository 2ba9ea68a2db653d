#pragma once

#include "runtime/insight/evidence.h"

namespace hetero::insight {

// The evidence with numbers that cannot be (less than 0, not finite, beyond 10^9 seconds, or 10^6
// of replicas, threads and a batch's samples) as if they were not measured, and shares of at most
// 1: a member that began again has counted back, and a clock has jumped. Losses stay as they are,
// and clocks' offsets may be negative.
Evidence Clean(Evidence evidence);

}  // namespace hetero::insight
