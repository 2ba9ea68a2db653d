#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"

namespace hetero::source {

// Writes the numbers of `value`, a number or lists of numbers of the label's shape, behind each
// other to `out`: int64 or float32, little-endian, as many as the label has. kInvalidArgument says
// what `value` is instead: "is no list of 3".
absl::Status FlattenNumbers(const nlohmann::json& value, const api::Label& label, uint8_t* out);

// A value with labels in it, which are lists of lists at most: what is nested much deeper is
// refused, and its memory is not paid. kInvalidArgument says what is wrong: "is no JSON".
absl::StatusOr<nlohmann::json> ParseShallowJson(std::string_view text);

}  // namespace hetero::source
