#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// runPolicy.ttlSecondsAfterFinished: deletes the object of a job that has been finished for
// that long.
void ExpireJob(Pass& pass);

}  // namespace hetero::plan
