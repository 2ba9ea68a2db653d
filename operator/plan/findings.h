#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// status.findings as the head of this attempt last told them, and an event for each rule and member
// of which there was none, at most api::kMostToldFindings of a job. Those of an earlier head stand,
// as ones that hold no more once the training runs, until this one has found something; those of a
// job that is over stay.
void CopyFindings(Pass& pass);

}  // namespace hetero::plan
