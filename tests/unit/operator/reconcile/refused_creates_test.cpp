// What goes on while the API refuses to create anything.
#include <gtest/gtest.h>

#include <string>

#include "fake_cluster.h"

namespace hetero::reconcile {
namespace {

using nlohmann::json;

// A pod that its dead node does not end counts against the quota that refuses its replacement: who
// waited for the one before the other waited for good.
TEST(RefusedCreates, DoNotKeepAPodThatHangsInTerminating) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  ASSERT_TRUE(cluster.Settle("vit"));
  cluster.RunPods();
  ASSERT_TRUE(cluster.Settle("vit"));
  cluster.api.SetIntercept([](const kube::Request& request) -> std::optional<kube::Response> {
    if (request.method != "POST" || request.path.find("/pods") == std::string::npos) return {};
    return FakeApi::Error(403, "Forbidden", "pods is forbidden: exceeded quota: small");
  });
  cluster.api.Remove("pods", "team/vit-cpu-0");
  cluster.api.Change("pods", "team/vit-gpu-0", [](json& pod) {
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    pod["metadata"]["deletionGracePeriodSeconds"] = 30;
  });
  ASSERT_TRUE(cluster.Settle("vit"));
  ASSERT_NE(cluster.Status("vit").Find(api::ConditionType::kPodsCreated), nullptr);
  EXPECT_EQ(cluster.Status("vit").Find(api::ConditionType::kPodsCreated)->reason, "QuotaExceeded");
  ASSERT_TRUE(cluster.api.Objects("pods").contains("team/vit-gpu-0")) << "its time is not over";

  cluster.clock.Advance(cluster.settings.pod_kill_grace);
  for (int i = 0; i < 60; ++i) {
    cluster.Sync();
    ASSERT_TRUE(cluster.Pass("vit").ok());
    cluster.clock.Advance(std::chrono::seconds(1));
  }
  EXPECT_FALSE(cluster.api.Objects("pods").contains("team/vit-gpu-0"));
}

}  // namespace
}  // namespace hetero::reconcile
