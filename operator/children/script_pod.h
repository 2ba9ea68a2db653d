#pragma once

#include <nlohmann/json.hpp>

#include "operator/children/children.h"

// Pods that run the user's own Python: ranks that are a script, and CPU workers with Python
// operators. Their image is the user's and has nothing of ours: an init container copies our
// program and the Python package into a volume, and the container `runtime` starts the agent or the
// worker from there. Internal to operator/children.
namespace hetero::children {

bool RunsScript(const api::HeteroTrainingJob& job, const api::Role& role);
// Either of the two.
bool BringsOwnImage(const api::HeteroTrainingJob& job, const api::Role& role);

// Fills the volume; first of the pod's init containers.
nlohmann::json InstallContainer(const PodSlot& slot, const Settings& settings);

// Our program in the volume, as command of the container `runtime`, and what makes it the agent.
nlohmann::json InstalledCommand();
nlohmann::json AgentArguments(const api::Role& role, const std::string& metrics_address);

// A user without a home, and most folders read-only: where neither template says otherwise, what
// libraries keep goes below /tmp. Variables of the image stay where ours do not name them.
void SetScriptEnvironment(nlohmann::json& container);

}  // namespace hetero::children
