#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// runPolicy.cleanPodPolicy of a finished job.
//   All:     every child goes.
//   Running: pods that have not ended go (those of a job that succeeded may take
//            settings.pod_kill_grace to end by themselves), and the head's Service. Ended pods, for
//            their logs, and what they mount stay until the job is deleted.
//   None:    nothing goes.
void CleanUp(Pass& pass);

// Whether the job has objects besides pods, as far as they can be seen.
bool ObjectsLeft(const Pass& pass);
// Deletes them all: the Secret, then the others, whose presence thus tells that it may be there.
void DeleteObjects(Pass& pass);

}  // namespace hetero::plan
