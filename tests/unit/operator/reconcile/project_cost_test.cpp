// What the operator reads of pods and nodes to know what they cost.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "api/job_status.h"
#include "operator/reconcile/project.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;

base::WallTime Moment(int seconds) {
  return *api::ParseTime("2026-01-01T10:00:00Z") + std::chrono::seconds(seconds);
}

TEST(ProjectPodTest, ReadsFromWhenToWhenItCosts) {
  json object = json::parse(R"({
    "metadata": {"name": "vit-cpu-1"},
    "spec": {"nodeName": "node-7", "containers": [{"name": "runtime"}]},
    "status": {"phase": "Running", "conditions": [
      {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T10:00:05Z"},
      {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T10:00:09Z"}]}})");
  EXPECT_EQ(ProjectPod(object)->bound, Moment(5));
  object["status"]["conditions"][0]["status"] = "False";
  EXPECT_EQ(ProjectPod(object)->bound, std::nullopt);
  EXPECT_EQ(ProjectPod(object)->failed_by, std::nullopt);
  // Rejected by its node: no container says when.
  object["status"]["phase"] = "Failed";
  EXPECT_EQ(ProjectPod(object)->failed_by, Moment(9));
  object["metadata"]["deletionTimestamp"] = "2026-01-01T10:01:00Z";
  object["metadata"]["deletionGracePeriodSeconds"] = 30;
  EXPECT_EQ(ProjectPod(object)->deletion_asked, Moment(30));
  object["spec"]["containers"][0]["resources"]["requests"] = {{"cpu", "1500m"}};
  EXPECT_TRUE(ProjectPod(object)->requests.empty());
  EXPECT_DOUBLE_EQ(ProjectPod(object, /*with_requests=*/true)->requests.at("cpu"), 1.5);
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

}  // namespace
}  // namespace hetero::reconcile
