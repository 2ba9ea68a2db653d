#pragma once

#include "operator/plan/pass.h"

// Scripts (training.script) that failed and were started again by the agents, while all pods
// stayed. The head counts the generations of its attempt that ended so; each is one of the job's
// restarts, as a failed pod is.
namespace hetero::plan {

enum class ScriptRestarts { kNone, kAllowed, kTooMany };

// Adds those that are new to the status, as far as runPolicy.maxRestarts goes, and what the head
// knows of the first failure to firstFailure.
ScriptRestarts ChargeScriptRestarts(Pass& pass);

// The same, with an event; ends the job when there were too many. The head, which knows nothing of
// the pods that failed, may have had no reason to.
void CountScriptRestarts(Pass& pass);

}  // namespace hetero::plan
