#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "operator/kube/transport.h"

namespace hetero::kube {

// The error of a reply that is not 2xx, from its Status object where the body is one. `call` says
// what was asked: "GET /api/v1/pods".
absl::Status ErrorOfResponse(std::string_view call, const Response& response);

// The error that a Status object means; ERROR events of a watch carry one.
absl::Status ErrorOfStatusObject(std::string_view call, const nlohmann::json& object);

}  // namespace hetero::kube
