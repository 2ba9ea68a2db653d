// What goes on while the API refuses to create anything.
#include <gmock/gmock.h>
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

// The API's own words, as its plug-ins say them, look like a missing right.
TEST(RefusedCreates, SayWhatTheJobsAuthorCanDo) {
  struct Case {
    int code;
    std::string says, remedy;
  };
  const Case cases[] = {
      {403,
       R"(pods "vit-head-0" is forbidden: failed quota: q: must specify limits.cpu for: runtime)",
       "a ResourceQuota wants every container to say these"},
      {403,
       R"(pods "vit-cpu-0" is forbidden: maximum cpu usage per Container is 1, but limit is 2)",
       "a LimitRange of the namespace says so"},
      {422,
       R"(Pod "vit-cpu-0" is invalid: spec.containers[0].resources.requests: Invalid value: "2": )"
       "must be less than or equal to cpu limit of 1",
       "set requests and limits in the template, both"},
  };
  for (const Case& one : cases) {
    FakeCluster cluster;
    cluster.CreateJob("vit");
    cluster.api.SetIntercept([&](const kube::Request& request) -> std::optional<kube::Response> {
      if (request.method != "POST" || request.path.find("/pods") == std::string::npos) return {};
      return FakeApi::Error(one.code, one.code == 403 ? "Forbidden" : "Invalid", one.says);
    });
    ASSERT_TRUE(cluster.Settle("vit"));
    const api::JobStatus status = cluster.Status("vit");
    const auto* created = status.Find(api::ConditionType::kPodsCreated);
    ASSERT_NE(created, nullptr);
    EXPECT_EQ(created->reason, "CreateFailed");
    EXPECT_THAT(created->message, ::testing::HasSubstr(one.says));
    EXPECT_THAT(created->message, ::testing::HasSubstr(one.remedy));
  }
}

bool MakesPod(const kube::Request& request) {
  return request.method == "POST" && request.path.find("/pods") != std::string::npos;
}

kube::Response FullQuota() {
  return FakeApi::Error(403, "Forbidden", "pods is forbidden: exceeded quota: small");
}

constexpr char kTrainerIsListedLast[] = R"({"roles": [
    {"name": "head", "type": "Head"},
    {"name": "cpu", "type": "CPUWorker", "replicas": 998, "minReplicas": 1},
    {"name": "gpu", "type": "GPUWorker"}]})";

// Nothing but their CPUs is short: the trainer asks for less of them.
TEST(RefusedCreates, OfAThousandCpuWorkersKeepNoTrainerWaiting) {
  FakeCluster cluster;
  cluster.CreateJob("vit", R"({"roles": [{"name": "head", "type": "Head"},
                                         {"name": "cpu", "type": "CPUWorker", "replicas": 998},
                                         {"name": "gpu", "type": "GPUWorker"}]})");
  cluster.api.SetIntercept([](const kube::Request& request) -> std::optional<kube::Response> {
    if (!MakesPod(request) || request.body.find("vit-cpu-") == std::string::npos) return {};
    return FullQuota();
  });
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_TRUE(cluster.api.Objects("pods").contains("team/vit-gpu-0"));
  EXPECT_LE(CountWrites(cluster.api, "POST", "/pods"), 20);
}

TEST(RefusedCreates, LeaveTheRoomToThoseWithoutWhomTheJobDoesNotTrain) {
  FakeCluster cluster;
  cluster.CreateJob("vit", kTrainerIsListedLast);
  int room = 4;
  cluster.api.SetIntercept([&](const kube::Request& request) -> std::optional<kube::Response> {
    if (!MakesPod(request)) return {};
    if (room == 0) return FullQuota();
    --room;
    return {};
  });
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_EQ(cluster.api.Objects("pods").size(), 4u);
  for (const char* pod : {"team/vit-head-0", "team/vit-cpu-0", "team/vit-gpu-0"}) {
    EXPECT_TRUE(cluster.api.Objects("pods").contains(pod)) << pod;
  }
  cluster.RunPods();
  ASSERT_TRUE(cluster.Settle("vit"));
  cluster.api.Remove("pods", "team/vit-gpu-0");
  room = 1;
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_EQ(room, 0);
  EXPECT_TRUE(cluster.api.Objects("pods").contains("team/vit-gpu-0"))
      << "at once: that it is full for CPU workers holds up nobody else";
}

// A trainer has seconds between the notice and the end of its node.
TEST(RefusedCreates, KeepNoNoticeFromTheHead) {
  FakeCluster cluster;
  cluster.CreateJob("vit", kTrainerIsListedLast);
  cluster.api.SetIntercept([](const kube::Request& request) -> std::optional<kube::Response> {
    if (!MakesPod(request) || request.body.find("vit-cpu-9") == std::string::npos) return {};
    return FullQuota();
  });
  cluster.Start("vit");
  ASSERT_EQ(ReasonOf(cluster.Status("vit"), api::ConditionType::kPodsCreated), "QuotaExceeded");
  cluster.heads.reports["team/vit"].notices_fingerprint = 7;  // what an earlier operator has told
  ASSERT_TRUE(cluster.Settle("vit"));
  ASSERT_EQ(cluster.heads.warnings.size(), 1u);
  EXPECT_TRUE(cluster.heads.warnings[0].notices.empty());
}

}  // namespace
}  // namespace hetero::reconcile
