#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// Fails a job that has not begun when its spec has errors or cannot be run here. One that has
// begun, or is suspended, is never failed for that: this operator may be an older or a stricter one
// than that which began it. The condition SpecIgnored then names the fields and the job goes on as
// it is, or stays suspended. Fields that are merely unknown are passed over, and told by the same
// condition.
void CheckSpec(Pass& pass);

// Holds a job whose spec was changed into one that is refused: no pod is made or deleted by it.
void HoldRefusedSpec(Pass& pass);

}  // namespace hetero::plan
