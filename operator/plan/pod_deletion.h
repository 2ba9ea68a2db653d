#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// Deletes, each by uid, the pods that the status as read has given up: of older attempts, counted
// as failed (their exit is told to the head beside it), and replicas that the spec no longer wants.
void DeleteGivenUpPods(Pass& pass);

// Deletes all pods of the job that are not Terminating yet: with one call, and each of those that
// have lost the label by which that call selects.
void DeleteAllPods(Pass& pass);

// Ends what hangs in Terminating. Applies in every state of a job, and comes before all else: what
// is asked of the API after a refusal waits.
void ForceStuckPods(Pass& pass);

}  // namespace hetero::plan
