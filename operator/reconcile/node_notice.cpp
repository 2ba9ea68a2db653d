#include "operator/reconcile/node_notice.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/json_access.h"

namespace hetero::reconcile {
namespace {

using base::FieldOf;
using base::ListOf;
using base::TextOf;
using nlohmann::json;

constexpr std::array<std::string_view, 8> kTaints = {
    "karpenter.sh/disrupted",                         // Karpenter 1.0 and newer
    "karpenter.sh/disruption",                        // before
    "aws-node-termination-handler/",                  // spot-itn, asg-lifecycle-termination, ...
    "cloud.google.com/impending-node-termination",    // GKE: 30 s or less, spot and maintenance
    "remediator.kubernetes.azure.com/unschedulable",  // AKS
    "ToBeDeletedByClusterAutoscaler",
    "node.cloudprovider.kubernetes.io/shutdown",
    "node.kubernetes.io/out-of-service"};

bool Means(std::string_view known, std::string_view key) {
  return known.ends_with('/') ? key.starts_with(known) : key == known;
}

}  // namespace

plan::NodeNotice ReadNodeNotice(const json& node, const std::vector<std::string>& more_taints) {
  using Kind = plan::NodeNotice::Kind;
  const json& spec = FieldOf(node, "spec");
  for (const json& taint : ListOf(spec, "taints")) {
    const std::string key = TextOf(taint, "key");
    const auto means = [&key](std::string_view known) { return Means(known, key); };
    if (std::any_of(kTaints.begin(), kTaints.end(), means) ||
        std::any_of(more_taints.begin(), more_taints.end(), means)) {
      return {.kind = Kind::kLeaving, .sign = absl::StrCat("taint ", key)};
    }
  }
  if (!FieldOf(FieldOf(node, "metadata"), "deletionTimestamp").is_null()) {
    return {.kind = Kind::kLeaving, .sign = "it is being deleted"};
  }
  if (FieldOf(spec, "unschedulable") == json(true)) {
    return {.kind = Kind::kMayStay, .sign = "it was cordoned"};
  }
  return {};
}

}  // namespace hetero::reconcile
