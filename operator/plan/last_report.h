#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// Of a job that the operator itself has ended (a deadline, the budget, a rule): its head is told,
// so that it writes the report, and what it answers goes into status.result. True while the pods
// have to stay for that: the head runs, can be reached, and its grace is not over. Whatever comes
// of it, the job has failed for the reason that is stored.
bool AwaitLastReport(Pass& pass);

}  // namespace hetero::plan
