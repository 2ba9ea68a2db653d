#pragma once

#include "nlohmann/json.hpp"

namespace hetero::api {

inline constexpr char kCrdFile[] =
    HETERO_SOURCE_DIR "/crds/heterotrainingjobs.training.hetero.dev.yaml";

// The hand-written resource definition; read once, never destroyed.
const nlohmann::json& Crd();
// Its OpenAPI schema of the whole object.
const nlohmann::json& RootSchema();

}  // namespace hetero::api
