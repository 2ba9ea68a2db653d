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

TEST(ProjectNodeTest, ReadsWhetherANodeSaysItsZone) {
  const char* zoned = R"({"metadata": {"labels": {"topology.kubernetes.io/zone": "z"}}})";
  EXPECT_TRUE(ProjectNode(json::parse(zoned))->in_zone);
  EXPECT_FALSE(ProjectNode(json::parse(R"({"metadata": {"name": "a"}})"))->in_zone);
}

}  // namespace
}  // namespace hetero::reconcile
