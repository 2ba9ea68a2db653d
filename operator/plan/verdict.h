#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// Ends the job when its verdict is known: from the head's report, from the last words of the head's
// pod, or, when the head is gone but every GPU worker has ended with 0, from those of rank 0. A
// head that ended without a verdict is a failed member like any other; one that was told to end by
// a deletion or a drain has no say in whether the job failed.
void ReadVerdict(Pass& pass);

}  // namespace hetero::plan
