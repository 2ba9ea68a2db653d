#pragma once

#include "operator/plan/observed.h"

namespace hetero::plan {

// Whether this operator may touch the job: not when it is being deleted (the garbage collector has
// it) nor when runPolicy.managedBy names somebody else.
bool IsOurs(const ObservedJob& job);

}  // namespace hetero::plan
