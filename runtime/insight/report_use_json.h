#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/insight/report.h"

namespace hetero::insight {

// The lists `resources` and `batchLives` of report.json; always there, possibly empty.
void PutUse(nlohmann::ordered_json& object, const Report& report);

}  // namespace hetero::insight
