#pragma once

#include <string_view>

#include "api/findings.h"
#include "nlohmann/json.hpp"

namespace hetero::api {

// Sets one field of the manifest `root` from "path=value".
//   path   relative to spec unless it begins with "spec." or "metadata."; list entries by index
//          (pipeline.0.repeat or pipeline[0].repeat), roles also by name (roles.cpu.replicas)
//   value  YAML, so lists and maps work (size={height: 32, width: 32}); for a string field the text
//   as
//          it stands; nothing at all removes the field
// Missing parents are created. A path that no manifest can have, or a list entry that this one does
// not have, is added to `findings` with the names that would do.
void ApplyOverride(nlohmann::json& root, std::string_view text, Findings& findings);

}  // namespace hetero::api
