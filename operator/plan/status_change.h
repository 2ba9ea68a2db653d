#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// Whether the status made has to be written, and how soon. Counts, progress, findings and the
// wording of conditions can wait. The status is taken as it will be read back (whole seconds, cut
// texts), so that what cannot be stored is not written again and again.
void CompareStatus(Pass& pass);

// The plan of a job that is not ours: nothing.
Plan HandsOff(const ObservedJob& job);

}  // namespace hetero::plan
