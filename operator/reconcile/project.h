#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "operator/plan/observed.h"

// From the API's objects to what the stores keep. Pure. Objects of any shape are accepted: what is
// missing or of the wrong type is left at its default.
namespace hetero::reconcile {

// A spec parsed before is reused when metadata.generation has not changed.
std::shared_ptr<const plan::ObservedJob> ProjectJob(
    const nlohmann::json& object, const std::shared_ptr<const plan::ObservedJob>& previous);
std::shared_ptr<const plan::ObservedPod> ProjectPod(const nlohmann::json& object);
std::shared_ptr<const plan::ObservedObject> ProjectObject(const nlohmann::json& object);
std::shared_ptr<const plan::ObservedObject> ProjectPodGroup(const nlohmann::json& object,
                                                            children::GangApi gang_api);
// `more_taints` as in node_notice.h.
std::shared_ptr<const plan::ObservedNode> ProjectNode(
    const nlohmann::json& object, const std::vector<std::string>& more_taints = {});
std::shared_ptr<const plan::ObservedWorkload> ProjectWorkload(const nlohmann::json& object);
std::shared_ptr<const plan::ObservedFlavor> ProjectFlavor(const nlohmann::json& object);
// The value of a WorkloadPriorityClass.
std::shared_ptr<const int32_t> ProjectPriority(const nlohmann::json& object);

}  // namespace hetero::reconcile
