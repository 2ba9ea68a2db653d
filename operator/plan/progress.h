#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// status.progress as the head of this attempt last said it; the last figures of an earlier one
// stand until then.
void CopyProgress(Pass& pass);

}  // namespace hetero::plan
