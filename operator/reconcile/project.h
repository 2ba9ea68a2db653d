#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/price_sheet.h"
#include "operator/plan/observed.h"

// From the API's objects to what the stores keep. Pure. Objects of any shape are accepted: what is
// missing or of the wrong type is left at its default.
namespace hetero::reconcile {

// What nodes cost, and by which labels they say that they may be taken away at any time.
struct NodePrices {
  api::PriceSheet sheet;
  std::map<std::string, std::string> spot_labels;
};

// A spec parsed before is reused when metadata.generation has not changed.
std::shared_ptr<const plan::ObservedJob> ProjectJob(
    const nlohmann::json& object, const std::shared_ptr<const plan::ObservedJob>& previous);
// `with_requests`: what it asks for is kept.
std::shared_ptr<const plan::ObservedPod> ProjectPod(const nlohmann::json& object,
                                                    bool with_requests = false);
std::shared_ptr<const plan::ObservedObject> ProjectObject(const nlohmann::json& object);
std::shared_ptr<const plan::ObservedObject> ProjectPodGroup(const nlohmann::json& object,
                                                            children::GangApi gang_api);
// `more_taints` as in node_notice.h. `prices` null: nodes have none.
std::shared_ptr<const plan::ObservedNode> ProjectNode(
    const nlohmann::json& object, const std::vector<std::string>& more_taints = {},
    const NodePrices* prices = nullptr);
std::shared_ptr<const plan::ObservedWorkload> ProjectWorkload(const nlohmann::json& object);
std::shared_ptr<const plan::ObservedFlavor> ProjectFlavor(const nlohmann::json& object);
// The value of a WorkloadPriorityClass.
std::shared_ptr<const int32_t> ProjectPriority(const nlohmann::json& object);

}  // namespace hetero::reconcile
