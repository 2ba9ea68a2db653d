#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

// What pods ask for and nodes have, in units of each resource ("cpu", "memory", "nvidia.com/gpu").
// Pure.
namespace hetero::children {

using Resources = std::map<std::string, double>;

// `spec` is a pod's; counted as Kubernetes' scheduler does.
Resources RequestsOf(const nlohmann::json& spec);

// Of a ResourceList, such as a node's status.allocatable.
Resources ResourcesOf(const nlohmann::json& list);

// The largest share of `whole` that `part` takes of any resource, 0 to 1. What `whole` has nothing
// of does not count.
double DominantShare(const Resources& part, const Resources& whole);

}  // namespace hetero::children
