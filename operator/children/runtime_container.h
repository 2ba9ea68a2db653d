#pragma once

#include <nlohmann/json.hpp>

#include "operator/children/children.h"

// The container whose end decides how its pod ended. Internal to operator/children.
namespace hetero::children {

// `given`, the container of that name from the template (any shape), with everything that it leaves
// open.
nlohmann::json RuntimeContainer(const api::HeteroTrainingJob& job, const PodSlot& slot,
                                const Settings& settings, nlohmann::json given);

// Which ports the container of a role serves, by name.
std::vector<std::pair<std::string, int>> PortsOf(api::RoleType type);

}  // namespace hetero::children
