#pragma once

#include <nlohmann/json.hpp>

#include "operator/children/children.h"

namespace hetero::children {

// Who the process is, where its head is and how it is trusted: the HETERO_* variables of
// `container`. They stand before the user's, so that those may refer to them as $(HETERO_INDEX).
void SetEnvironment(const api::HeteroTrainingJob& job, const PodSlot& slot,
                    nlohmann::json& container);

}  // namespace hetero::children
