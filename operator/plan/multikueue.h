#pragma once

#include "operator/plan/pass.h"

namespace hetero::plan {

// A job whose managedBy is kueue.x-k8s.io/multikueue. Once the Workload is admitted, MultiKueue
// copies the job to another cluster, whose operator runs it, and copies the status back. Here there
// is the Workload and nothing else, and the status is never written: what hinders the Workload is
// told by the event NotQueued.
void KeepWorkloadForMultiKueue(Pass& pass);

// Whether the job is such a copy: who made it removes it.
bool IsCopyOfMultiKueue(const Pass& pass);

}  // namespace hetero::plan
