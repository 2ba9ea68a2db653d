// Objects that are in the way, and what the API refuses to create.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "fake_cluster.h"

namespace hetero::reconcile {
namespace {

using api::ConditionType;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(ConflictTest, AnObjectOfALivingJobIsANameConflictThatNamesIt) {
  FakeCluster cluster;
  const std::string other = cluster.CreateJob("vit-head");
  json pod = {{"metadata", {{"ownerReferences", json::array()}}}};
  pod["metadata"]["ownerReferences"].push_back(
      {{"kind", api::kKind}, {"name", "vit-head"}, {"uid", other}, {"controller", true}});
  cluster.api.Put("pods", "team/vit-cpu-0", pod);
  cluster.CreateJob("vit");
  ASSERT_TRUE(cluster.Settle("vit"));
  const api::JobStatus status = cluster.Status("vit");
  ASSERT_NE(status.Find(ConditionType::kPodsCreated), nullptr);
  EXPECT_EQ(status.Find(ConditionType::kPodsCreated)->reason, "NameConflict");
  EXPECT_THAT(status.Find(ConditionType::kPodsCreated)->message,
              HasSubstr("HeteroTrainingJob vit-head"));

  // The other job goes, and its objects after it.
  cluster.api.Remove("heterotrainingjobs", "team/vit-head");
  cluster.api.CollectGarbage();
  cluster.clock.Advance(std::chrono::seconds(5));
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_TRUE(cluster.Status("vit").Is(ConditionType::kPodsCreated));
}

TEST(ConflictTest, AnObjectWhoseJobIsGoneIsWaitedFor) {
  FakeCluster cluster;
  json pod = {{"metadata", {{"ownerReferences", json::array()}}}};
  pod["metadata"]["ownerReferences"].push_back(
      {{"kind", api::kKind}, {"name", "vit"}, {"uid", "long gone"}, {"controller", true}});
  cluster.api.Put("pods", "team/vit-cpu-0", pod);
  cluster.CreateJob("vit");
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_NE(ReasonOf(cluster.Status("vit"), ConditionType::kPodsCreated), "NameConflict");
  const auto result = cluster.Pass("vit");
  ASSERT_TRUE(result.ok());
  ASSERT_TRUE(result->requeue_after.has_value());
  EXPECT_LE(*result->requeue_after, std::chrono::seconds(2));
  cluster.api.CollectGarbage();
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_TRUE(cluster.Status("vit").Is(ConditionType::kPodsCreated));
}

TEST(ConflictTest, AnExhaustedQuotaIsToldAndNotHammered) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  cluster.api.SetIntercept([](const kube::Request& request) -> std::optional<kube::Response> {
    if (request.method != "POST" || request.path.find("/pods") == std::string::npos) return {};
    return FakeApi::Error(403, "Forbidden", "pods is forbidden: exceeded quota: small");
  });
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_EQ(ReasonOf(cluster.Status("vit"), ConditionType::kPodsCreated), "QuotaExceeded");
  const int tried = CountWrites(cluster.api, "POST", "/pods");
  EXPECT_GE(tried, 3) << "one of each role";
  EXPECT_LE(tried, 4);
  cluster.api.SetIntercept(nullptr);
  cluster.clock.Advance(std::chrono::seconds(15));
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_TRUE(cluster.Status("vit").Is(ConditionType::kPodsCreated));
}

TEST(ConflictTest, AFullQuotaRefusesAFewPodsOfALargeJobAndNotThousands) {
  constexpr int kOfAPass = 200;  // effects
  FakeCluster cluster;
  cluster.CreateJob("vit", R"({"roles": [{"name": "head", "type": "Head"},
                                         {"name": "gpu", "type": "GPUWorker"},
                                         {"name": "cpu", "type": "CPUWorker", "replicas": 998}]})");
  cluster.api.SetIntercept([](const kube::Request& request) -> std::optional<kube::Response> {
    if (request.method != "POST" || request.path.find("/pods") == std::string::npos) return {};
    return FakeApi::Error(403, "Forbidden", "pods is forbidden: exceeded quota: small");
  });
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_EQ(ReasonOf(cluster.Status("vit"), ConditionType::kPodsCreated), "QuotaExceeded");
  const int tried = CountWrites(cluster.api, "POST", "/pods");
  EXPECT_GE(tried, 3) << "one of each role";
  EXPECT_LE(tried, 20) << "and those that were under way when the first was refused";
  cluster.api.SetIntercept(nullptr);
  cluster.clock.Advance(std::chrono::seconds(15));
  // A batch a pass, so that other jobs have their turn between them.
  for (size_t made = kOfAPass; made <= 1000; made += kOfAPass) {
    cluster.clock.Advance(std::chrono::seconds(2));  // for the client's rate
    cluster.Sync();
    const auto result = cluster.Pass("vit");
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(cluster.api.Objects("pods").size(), made);
    EXPECT_LE(result->requeue_after.value_or(base::Duration::max()), std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_EQ(cluster.api.Objects("pods").size(), 1000u);
  EXPECT_TRUE(cluster.Status("vit").Is(ConditionType::kPodsCreated));
}

// A foreign finalizer keeps it there whatever is deleted with however little grace.
TEST(ConflictTest, APodThatAFinalizerHoldsMakesNoSpin) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  cluster.Start("vit");
  cluster.api.Change("pods", "team/vit-cpu-1", [](json& pod) {
    pod["metadata"]["finalizers"] = {"example.com/keep"};
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    pod["metadata"]["deletionGracePeriodSeconds"] = 30;
  });
  ASSERT_TRUE(cluster.Settle("vit"));
  const int created = CountWrites(cluster.api, "POST", "/pods");
  cluster.clock.Advance(std::chrono::minutes(2));  // beyond every grace
  for (int i = 0; i < 120; ++i) {
    cluster.Sync();
    ASSERT_TRUE(cluster.Pass("vit").ok());
    cluster.clock.Advance(std::chrono::milliseconds(500));
  }
  EXPECT_TRUE(cluster.Pod("vit-cpu-1").forced);
  EXPECT_EQ(CountWrites(cluster.api, "DELETE", "vit-cpu-1"), 1) << "in a minute";
  EXPECT_LE(CountWrites(cluster.api, "POST", "/pods") - created, 1) << "which found it there";
  cluster.api.Remove("pods", "team/vit-cpu-1");
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_THAT(cluster.api.Objects("pods"), SizeIs(4));
}

// A proxy's, say, while the watch stands: nothing else would bring the job another pass.
TEST(ConflictTest, AStatusThatIsNotFoundIsWrittenAgain) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  cluster.api.SetIntercept([](const kube::Request& request) -> std::optional<kube::Response> {
    if (request.path.find("/status") == std::string::npos) return {};
    return kube::Response{.status = 404, .body = "404 page not found\n"};
  });
  cluster.Sync();
  const auto result = cluster.Pass("vit");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->requeue_after.has_value());
  cluster.Sync();
  EXPECT_FALSE(cluster.Pass("vit").ok()) << "somebody has to hear of it";
  cluster.api.SetIntercept(nullptr);
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_TRUE(cluster.Status("vit").Is(ConditionType::kPodsCreated));
}

// Not every 404 is the end of the namespace: a kind may be missing, or a proxy in between.
TEST(ConflictTest, ACreateThatFindsNothingIsTriedAgainAndTold) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  std::string message = "the server could not find the requested resource";
  cluster.api.SetIntercept([&](const kube::Request& request) -> std::optional<kube::Response> {
    if (request.method != "POST" || request.path.find("/services") == std::string::npos) return {};
    return FakeApi::Error(404, "NotFound", message);
  });
  cluster.Sync();
  EXPECT_FALSE(cluster.Pass("vit").ok()) << "to be tried again";
  for (int i = 0; i < 4; ++i) {
    cluster.Sync();
    (void)cluster.Pass("vit");
  }
  EXPECT_EQ(ReasonOf(cluster.Status("vit"), ConditionType::kPodsCreated), "CreateFailed");
  EXPECT_THAT(cluster.Status("vit").Find(ConditionType::kPodsCreated)->message,
              HasSubstr("could not find the requested resource"));

  message = "namespaces \"team\" not found";
  cluster.Sync();
  EXPECT_TRUE(cluster.Pass("vit").ok()) << "nothing more to do there";
}

TEST(ConflictTest, ATerminatingNamespaceIsLeftInPeace) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  cluster.api.SetIntercept([](const kube::Request& request) -> std::optional<kube::Response> {
    if (request.method != "POST") return {};
    return FakeApi::Error(403, "Forbidden",
                          "unable to create new content in namespace team because it is being "
                          "terminated");
  });
  cluster.Sync();
  EXPECT_TRUE(cluster.Pass("vit").ok());
  EXPECT_NE(ReasonOf(cluster.Status("vit"), ConditionType::kPodsCreated), "CreateFailed");
}

TEST(ConflictTest, AConflictIsNeverWrittenOver) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  cluster.Sync();
  cluster.api.Change("heterotrainingjobs", "team/vit",
                     [](json& job) { job["metadata"]["labels"]["a"] = "b"; });
  const auto result = cluster.Pass("vit");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->requeue_after, base::Duration(std::chrono::milliseconds(50)));
  EXPECT_THAT(cluster.api.Objects("services"), SizeIs(0));
  ASSERT_TRUE(cluster.Pass("vit").ok());
  EXPECT_THAT(cluster.api.writes(), SizeIs(1)) << "the same version is not tried at once";
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_THAT(cluster.api.Objects("pods"), SizeIs(4));
}

}  // namespace
}  // namespace hetero::reconcile
