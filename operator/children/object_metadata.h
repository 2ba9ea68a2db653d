#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "api/hetero_training_job.h"

namespace hetero::children {

// The metadata of every child: name, namespace, labels and the job as controlling owner.
nlohmann::json ObjectMetadata(const api::HeteroTrainingJob& job, const std::string& name);

}  // namespace hetero::children
