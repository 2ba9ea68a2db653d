#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/plan/observed.h"

namespace hetero::reconcile {

// What a node bears that says that it is about to go: the first sign of those that say so surely, a
// taint of whoever takes it away (Karpenter, AWS node termination handler, GKE, AKS, the cluster
// autoscaler, or one of `more_taints`) or that its object is being deleted; else that it was
// cordoned, after which it may stay. Taints are told by their key; one of `more_taints` that ends
// with "/" stands for all keys that begin with it.
plan::NodeNotice ReadNodeNotice(const nlohmann::json& node,
                                const std::vector<std::string>& more_taints);

}  // namespace hetero::reconcile
