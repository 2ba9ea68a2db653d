// What the operator reads of nodes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/reconcile/project.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;

plan::NodeNotice NoticeOf(const std::string& node, const std::vector<std::string>& more = {}) {
  return ProjectNode(json::parse(node), more)->notice;
}

TEST(ProjectNodeTest, ReadsThatANodeIsAboutToGo) {
  using Kind = plan::NodeNotice::Kind;
  const auto tainted = [](const std::string& key) {
    return R"({"metadata": {"name": "a"}, "spec": {"unschedulable": true, "taints": [
        {"key": "node.kubernetes.io/unschedulable"}, {"key": ")" +
           key + R"(", "effect": "NoSchedule"}]}})";
  };
  for (const char* key :
       {"karpenter.sh/disrupted", "karpenter.sh/disruption",
        "aws-node-termination-handler/spot-itn", "cloud.google.com/impending-node-termination",
        "remediator.kubernetes.azure.com/unschedulable", "ToBeDeletedByClusterAutoscaler",
        "node.cloudprovider.kubernetes.io/shutdown", "node.kubernetes.io/out-of-service"}) {
    const plan::NodeNotice notice = NoticeOf(tainted(key));
    EXPECT_EQ(notice.kind, Kind::kLeaving) << key;
    EXPECT_EQ(notice.sign, std::string("taint ") + key);
  }
  EXPECT_EQ(NoticeOf(tainted("nvidia.com/gpu")).kind, Kind::kMayStay) << "it is cordoned";
  EXPECT_EQ(NoticeOf(tainted("corp.example/going")).kind, Kind::kMayStay);
  EXPECT_EQ(NoticeOf(tainted("corp.example/going"), {"corp.example/going"}).kind, Kind::kLeaving);
  EXPECT_EQ(NoticeOf(tainted("corp.example/going"), {"corp.example/"}).kind, Kind::kLeaving);
  EXPECT_EQ(NoticeOf(R"({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})").kind,
            Kind::kLeaving);
  EXPECT_EQ(NoticeOf(R"({"metadata": {"name": "a"}, "spec": {"taints": 7}})").kind, Kind::kNone);
}

TEST(ProjectNodeTest, ReadsWhatANodeCosts) {
  NodePrices prices{.spot_labels = {{"karpenter.sh/capacity-type", "spot"}}};
  prices.sheet.instance_types["m6i.large"] = {.on_demand = 100, .spot = 30};
  const auto node = [&prices](const std::string& labels) {
    return ProjectNode(json::parse(R"({"metadata": {"labels": )" + labels + R"(},
        "status": {"allocatable": {"cpu": "1930m", "memory": "7Gi"}}})"),
                       {}, &prices);
  };
  const auto spot = node(
      R"({"node.kubernetes.io/instance-type": "m6i.large", "karpenter.sh/capacity-type": "spot"})");
  EXPECT_EQ(spot->price, (api::NodePrice{30, 100}));
  EXPECT_DOUBLE_EQ(spot->allocatable.at("cpu"), 1.93);
  const auto lasting = node(R"({"beta.kubernetes.io/instance-type": "m6i.large",
                                "karpenter.sh/capacity-type": "on-demand"})");
  EXPECT_EQ(lasting->price, (api::NodePrice{100, 100}));
  const auto unknown = node(R"({"node.kubernetes.io/instance-type": "m6i.metal"})");
  EXPECT_EQ(unknown->price, std::nullopt);
  EXPECT_TRUE(unknown->allocatable.empty());
  EXPECT_EQ(ProjectNode(json::parse("{}"))->price, std::nullopt);
}

TEST(ProjectNodeTest, ReadsWhetherANodeSaysItsZone) {
  const char* zoned = R"({"metadata": {"labels": {"topology.kubernetes.io/zone": "z"}}})";
  EXPECT_TRUE(ProjectNode(json::parse(zoned))->in_zone);
  EXPECT_FALSE(ProjectNode(json::parse(R"({"metadata": {"name": "a"}})"))->in_zone);
}

}  // namespace
}  // namespace hetero::reconcile
