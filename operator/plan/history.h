#pragma once

#include <string>

#include "operator/plan/pass.h"

// status.history: what one head of a job leaves to the next, who may be of another attempt. The
// operator keeps it and reads nothing of it.
namespace hetero::plan {

// What the head of this attempt gave out last.
void CopyHistory(Pass& pass);

// Why the attempt began, for its head; empty: it is the first.
std::string AttemptCause(const Pass& pass);

}  // namespace hetero::plan
