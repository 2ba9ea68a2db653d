#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"
#include "api/hetero_training_job.h"

namespace hetero::source {

// Writes the numbers of `value`, a number or lists of numbers of the label's shape, behind each
// other to `out`: int64 or float32, little-endian, as many as the label has. kInvalidArgument says
// what `value` is instead: "is no list of 3".
absl::Status FlattenNumbers(const nlohmann::json& value, const api::Label& label, uint8_t* out);

}  // namespace hetero::source
