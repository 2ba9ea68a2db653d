#pragma once

#include <nlohmann/json_fwd.hpp>

namespace hetero::live {

// The JSON Merge Patch (RFC 7386) that makes `after` of `before`; both are objects, in which null
// is in arrays alone. Arrays are replaced as a whole. Empty object: they are equal.
nlohmann::json MergePatch(const nlohmann::json& before, const nlohmann::json& after);

}  // namespace hetero::live
