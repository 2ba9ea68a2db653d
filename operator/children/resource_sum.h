#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/numeric/int128.h"

// What pods ask for together, as Kubernetes' scheduler counts it. Internal to operator/children.
namespace hetero::children {

// Amounts by resource ("cpu", "memory", "nvidia.com/gpu"), in billionths of its unit, the smallest
// part that Kubernetes tells apart.
using Amounts = std::map<std::string, absl::int128>;

// "500m", "1Gi", "2e3", "0.5". What is no quantity gives 0: the API server refuses its pod.
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity
absl::int128 ParseQuantity(std::string_view text);

class ResourceSum {
 public:
  // `spec` is a pod's. Its containers and side cars ask for their sum, its other init containers
  // one after another, for no less than the largest; what the pod asks for as a whole stands in
  // place of both, and its overhead comes on top. A limit counts where there is no request.
  void AddPods(const nlohmann::json& spec, int count);
  // A ResourceList. Resources of which nothing is asked are left out.
  nlohmann::json ToJson() const;

 private:
  Amounts amounts_;
};

}  // namespace hetero::children
