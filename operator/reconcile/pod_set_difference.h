#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace hetero::reconcile {

// In what the pod sets of a Workload are other than those that the job needs: names, counts, and
// what the containers ask for. Images and whatever else costs no quota may differ, as between
// clusters they do. Empty: in nothing.
std::string PodSetDifference(const nlohmann::json& workload, const nlohmann::json& needed);

// The value of a resource.Quantity, such as 500m, 0.5, 16Gi or 1e3; none: it is no such thing.
std::optional<double> QuantityValue(std::string_view quantity);

}  // namespace hetero::reconcile
