#pragma once

#include "api/hetero_training_job.h"

namespace hetero::api {

// Fills what the schema cannot, because it depends on another field: an operator's parameters
// (torchvision's defaults), minReplicas and maxReplicas from replicas, gpusPerReplica of GPU
// workers. Given values stay. Idempotent.
void Default(HeteroTrainingJob& job);

}  // namespace hetero::api
