#pragma once

#include <nlohmann/json.hpp>

#include "operator/children/children.h"

// Which nodes a pod may and would like to go to, besides what its template says: of our programs'
// architecture, of the role's capacity (spot or on demand), near the job's other pods. Internal to
// operator/children.
namespace hetero::children {

void ChooseNodes(const api::HeteroTrainingJob& job, const api::Role& role, const Settings& settings,
                 nlohmann::json& spec);

// Heads and GPU workers are not moved only to save nodes: that costs all other pods their work.
void KeepFromConsolidation(const api::Role& role, nlohmann::json& annotations);

}  // namespace hetero::children
