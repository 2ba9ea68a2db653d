#pragma once

#include <nlohmann/json.hpp>

#include "operator/children/children.h"

namespace hetero::children {

// Who the process is, where its head is, how it is trusted and the keys of its stores: the HETERO_*
// variables of `container`. They stand before the user's, so that those may refer to them as
// $(HETERO_INDEX).
void SetEnvironment(const api::HeteroTrainingJob& job, const PodSlot& slot,
                    nlohmann::json& container);

}  // namespace hetero::children
