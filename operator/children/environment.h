#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "operator/children/children.h"

namespace hetero::children {

// Who the process is, where its head is, how it is trusted and the keys of its stores: the HETERO_*
// variables of `container`. They stand before the user's, so that those may refer to them as
// $(HETERO_INDEX).
// Those of a reserved name are left out (IsReserved).
void SetEnvironment(const api::HeteroTrainingJob& job, const PodSlot& slot,
                    nlohmann::json& container);
// Whether a template may not set a variable of that name. HETERO_LOG_LEVEL is its author's.
bool IsReserved(const std::string& variable);

}  // namespace hetero::children
