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

// Deletes the Secret and then the ConfigMap, whose presence thus tells that the Secret may be
// there.
void DeleteConfig(Pass& pass);

}  // namespace hetero::plan
