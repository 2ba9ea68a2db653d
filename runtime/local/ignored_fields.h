#pragma once

#include <string>
#include <vector>

#include "api/hetero_training_job.h"

namespace hetero::local {

// Paths of the fields that `job` sets to something else than their default and that have no meaning
// on one machine: "spec.runPolicy.suspend", "spec.roles[1].template". In the manifest's order.
std::vector<std::string> IgnoredFields(const api::HeteroTrainingJob& job);

// The job as it runs on one machine: nobody hands out Secrets there, so access keys are found as
// without a secretRef.
api::HeteroTrainingJob WithoutSecrets(api::HeteroTrainingJob job);

}  // namespace hetero::local
