#pragma once

#include "operator/plan/pass.h"

// CPU workers beyond what the gang of a queued job has (spec.scheduling.elasticPriorityClass): each
// has a Workload of its own, of lower priority, so that a busy queue takes them back one by one
// while the training goes on, and an idle one lends them.
namespace hetero::plan {

// Claims what is wanted beyond the gang while the job trains, gives back what was taken back once
// its pod is gone, and what is wanted no more.
void KeepElasticWorkloads(Pass& pass);

// Before the gang gives back its quota, and when nothing is to run: whether any was left. They go.
bool DeleteElasticWorkloads(Pass& pass);

}  // namespace hetero::plan
