#pragma once

#include "nlohmann/json.hpp"
#include "tests/support/paths.h"

namespace hetero::api {

inline const std::string kCrdFile =
    testing::SourceDir() + "/crds/heterotrainingjobs.training.hetero.dev.yaml";

// The hand-written resource definition; read once, never destroyed.
const nlohmann::json& Crd();
// Its OpenAPI schema of the whole object.
const nlohmann::json& RootSchema();

}  // namespace hetero::api
