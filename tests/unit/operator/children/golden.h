#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace hetero::children {

// Fails where `object` is not what golden/`name`.json has, byte by byte: a change of what users'
// clusters are asked to run shows in review. HETERO_WRITE_GOLDEN=1 rewrites the file.
void ExpectGolden(const std::string& name, const nlohmann::json& object);

}  // namespace hetero::children
