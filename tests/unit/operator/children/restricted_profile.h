#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hetero::children {

// What the Pod Security Standard `restricted` (and `baseline`, which it contains) forbids in a pod,
// written from the standard's text alone:
// kubernetes.io/docs/concepts/security/pod-security-standards. Empty: the pod is admitted.
std::vector<std::string> RestrictedViolations(const nlohmann::json& pod);

}  // namespace hetero::children
