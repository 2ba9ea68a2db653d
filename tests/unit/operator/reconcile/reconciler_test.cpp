#include "operator/reconcile/reconciler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/job_resource.h"
#include "fake_cluster.h"

namespace hetero::reconcile {
namespace {

using api::ConditionStatus;
using api::ConditionType;
using nlohmann::json;
using testing::HasSubstr;
using testing::SizeIs;

using State = plan::HeadReport::State;

int CountWrites(const FakeApi& api, const std::string& method, const std::string& part) {
  const auto writes = api.writes();
  return static_cast<int>(std::count_if(writes.begin(), writes.end(), [&](const auto& write) {
    return write.method == method && write.path.find(part) != std::string::npos;
  }));
}

std::string ReasonOf(const api::JobStatus& status, ConditionType type) {
  const api::Condition* condition = status.Find(type);
  return condition == nullptr ? "absent" : condition->reason;
}

// From nothing to a job that trains.
void Start(FakeCluster& cluster, const std::string& name) {
  ASSERT_TRUE(cluster.Settle(name));
  cluster.RunPods();
  ASSERT_TRUE(cluster.Settle(name));
  cluster.HeadSays(name, State::kRunning);
  ASSERT_TRUE(cluster.Settle(name));
}

TEST(ReconcilerTest, AHealthyJobRunsAndIsCleanedUpWithinItsBudgetOfWrites) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_THAT(cluster.api.Objects("pods"), SizeIs(4));
  EXPECT_THAT(cluster.api.Objects("services"), SizeIs(1));
  EXPECT_THAT(cluster.api.Objects("secrets"), SizeIs(1));
  EXPECT_THAT(cluster.api.Objects("configmaps"), SizeIs(1));
  EXPECT_THAT(cluster.api.Objects("networkpolicies"), SizeIs(1));
  EXPECT_TRUE(cluster.Status("vit").Is(ConditionType::kPodsCreated));

  cluster.RunPods();
  ASSERT_TRUE(cluster.Settle("vit"));
  ASSERT_TRUE(cluster.heads.followed.contains("team/vit"));
  EXPECT_EQ(cluster.heads.followed["team/vit"].address, "10.96.0.7:7071");
  cluster.HeadSays("vit", State::kRunning);
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_TRUE(cluster.Status("vit").Is(ConditionType::kRunning));

  cluster.HeadSays("vit", State::kSucceeded);
  ASSERT_TRUE(cluster.Settle("vit"));
  for (const char* pod : {"vit-head-0", "vit-cpu-0", "vit-cpu-1", "vit-gpu-0"}) {
    if (cluster.api.Objects("pods").contains(std::string("team/") + pod)) {
      cluster.EndContainer(pod, 0);
    }
  }
  ASSERT_TRUE(cluster.Settle("vit"));
  cluster.FinishTerminating();
  ASSERT_TRUE(cluster.Settle("vit"));
  const api::JobStatus status = cluster.Status("vit");
  EXPECT_TRUE(status.Is(ConditionType::kSucceeded));
  ASSERT_TRUE(status.result.has_value());
  EXPECT_EQ(status.result->steps, 10);
  for (const char* plural : {"pods", "services", "secrets", "configmaps", "networkpolicies"}) {
    EXPECT_THAT(cluster.api.Objects(plural), SizeIs(0)) << plural;
  }
  EXPECT_LE(cluster.api.writes().size(), 24u);
  EXPECT_EQ(cluster.api.gets(), 0);
}

TEST(ReconcilerTest, NothingIsCreatedTwiceWhileTheStoresAreLate) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  cluster.Sync();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(cluster.Pass("vit").ok());
  EXPECT_EQ(CountWrites(cluster.api, "POST", "/pods"), 4);
  EXPECT_EQ(CountWrites(cluster.api, "POST", "/services"), 1);
  EXPECT_EQ(cluster.api.gets(), 0);
  EXPECT_EQ(cluster.Status("vit").attempt, 1);
}

// It used to keep a worker until its last pod was there.
TEST(ReconcilerTest, AJobOfManyPodsLetsOthersHaveTheirTurn) {
  FakeCluster cluster;
  cluster.CreateJob("vit", R"({"roles": [{"name": "head", "type": "Head"},
                                         {"name": "cpu", "type": "CPUWorker", "replicas": 300},
                                         {"name": "gpu", "type": "GPUWorker"}]})");
  int most = 0;
  for (int pass = 0; pass < 10; ++pass) {
    cluster.Sync();
    const int before = CountWrites(cluster.api, "POST", "/pods");
    const auto result = cluster.Pass("vit");
    ASSERT_TRUE(result.ok()) << result.status();
    const int made = CountWrites(cluster.api, "POST", "/pods") - before;
    most = std::max(most, made);
    const bool more = made > 0 && before + made < 302;
    if (more) {
      ASSERT_TRUE(result->requeue_after.has_value());
      EXPECT_LE(*result->requeue_after, base::Duration(std::chrono::milliseconds(1)));
    }
    cluster.clock.Advance(std::chrono::seconds(1));
  }
  EXPECT_THAT(cluster.api.Objects("pods"), SizeIs(302));
  EXPECT_LE(most, 200);
}

// What was believed of late stores is not believed forever.
TEST(ReconcilerTest, APodThatWentUnseenIsMadeAgain) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  cluster.Sync();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(cluster.Pass("vit").ok());
  cluster.api.Remove("pods", "team/vit-cpu-1");
  ASSERT_TRUE(cluster.Settle("vit"));
  cluster.clock.Advance(Expectations::kPatience);
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_THAT(cluster.api.Objects("pods"), SizeIs(4));
}

TEST(ReconcilerTest, AFailedPodIsCountedOnceAndReplaced) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  Start(cluster, "vit");
  const std::string uid = cluster.Pod("vit-cpu-1").uid;
  cluster.EndContainer("vit-cpu-1", 1, "no such file");
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_EQ(cluster.Status("vit").restarts, 1);
  EXPECT_NE(cluster.Pod("vit-cpu-1").uid, uid);
  EXPECT_THAT(cluster.api.Objects("pods"), SizeIs(4));
  EXPECT_EQ(cluster.Status("vit").attempt, 1);
}

TEST(ReconcilerTest, TooManyFailuresEndTheJob) {
  FakeCluster cluster;
  cluster.CreateJob("vit", R"({"runPolicy": {"maxRestarts": 1}})");
  Start(cluster, "vit");
  for (int i = 0; i < 2; ++i) {
    cluster.EndContainer("vit-cpu-1", 1, "no such file");
    ASSERT_TRUE(cluster.Settle("vit"));
    cluster.RunPods();
  }
  EXPECT_EQ(ReasonOf(cluster.Status("vit"), ConditionType::kFailed), "MaxRestartsExceeded");
  // The head, which is not heard, has its grace for the report.
  EXPECT_FALSE(cluster.Pod("vit-head-0").deletion_time.has_value());
  cluster.clock.Advance(cluster.settings.last_report_grace);
  ASSERT_TRUE(cluster.Settle("vit"));
  cluster.FinishTerminating();
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_THAT(cluster.api.Objects("pods"), SizeIs(0));
}

TEST(ReconcilerTest, AnObjectOfALivingJobIsANameConflictThatNamesIt) {
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

TEST(ReconcilerTest, AnObjectWhoseJobIsGoneIsWaitedFor) {
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

TEST(ReconcilerTest, AnExhaustedQuotaIsToldAndNotHammered) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  cluster.api.SetIntercept([](const kube::Request& request) -> std::optional<kube::Response> {
    if (request.method != "POST" || request.path.find("/pods") == std::string::npos) return {};
    return FakeApi::Error(403, "Forbidden", "pods is forbidden: exceeded quota: small");
  });
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_EQ(ReasonOf(cluster.Status("vit"), ConditionType::kPodsCreated), "QuotaExceeded");
  EXPECT_EQ(CountWrites(cluster.api, "POST", "/pods"), 4);
  cluster.api.SetIntercept(nullptr);
  cluster.clock.Advance(std::chrono::seconds(15));
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_TRUE(cluster.Status("vit").Is(ConditionType::kPodsCreated));
}

TEST(ReconcilerTest, AFullQuotaRefusesOneBatchOfALargeJobAndNotThousands) {
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
  EXPECT_EQ(CountWrites(cluster.api, "POST", "/pods"), kOfAPass - 2) << "and two objects before";
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
TEST(ReconcilerTest, APodThatAFinalizerHoldsMakesNoSpin) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  Start(cluster, "vit");
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

// Not every 404 is the end of the namespace: a kind may be missing, or a proxy in between.
TEST(ReconcilerTest, ACreateThatFindsNothingIsTriedAgainAndTold) {
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

TEST(ReconcilerTest, ATerminatingNamespaceIsLeftInPeace) {
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

TEST(ReconcilerTest, AConflictIsNeverWrittenOver) {
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

TEST(ReconcilerTest, ProgressIsWrittenEveryFiveSecondsAtMost) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  Start(cluster, "vit");
  const size_t before = cluster.api.writes().size();
  for (int step = 1; step <= 100; ++step) {
    cluster.clock.Advance(std::chrono::milliseconds(200));
    api::JobProgress progress;
    progress.step = step;
    progress.last_update_time = std::chrono::floor<std::chrono::seconds>(cluster.clock.WallNow());
    cluster.heads.reports["team/vit"].progress = progress;
    cluster.heads.reports["team/vit"].last_step_time = cluster.clock.WallNow();
    cluster.heads.reports["team/vit"].last_heard = cluster.clock.WallNow();
    cluster.Sync();
    ASSERT_TRUE(cluster.Pass("vit").ok());
  }
  const size_t written = cluster.api.writes().size() - before;
  EXPECT_GE(written, 3u);
  EXPECT_LE(written, 5u);
}

TEST(ReconcilerTest, AJobThatIsGoneIsForgotten) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  Start(cluster, "vit");
  ASSERT_TRUE(cluster.heads.followed.contains("team/vit"));
  cluster.api.Remove("heterotrainingjobs", "team/vit");
  cluster.Sync();
  ASSERT_TRUE(cluster.Pass("vit").ok());
  EXPECT_FALSE(cluster.heads.followed.contains("team/vit"));
}

// Velero leaves the status out unless it is told otherwise (docs/kubernetes.md, Backup and
// restore).
TEST(ReconcilerTest, AFinishedJobThatIsRestoredWithoutItsStatusBeginsAnew) {
  FakeCluster cluster;
  const std::string uid = cluster.CreateJob("vit");
  Start(cluster, "vit");
  cluster.HeadSays("vit", State::kSucceeded);
  ASSERT_TRUE(cluster.Settle("vit"));
  cluster.FinishTerminating();
  ASSERT_TRUE(cluster.Settle("vit"));
  const json finished = cluster.api.Objects("heterotrainingjobs").at("team/vit");
  cluster.api.Remove("heterotrainingjobs", "team/vit");
  ASSERT_TRUE(cluster.Settle("vit"));

  json restored = finished;
  restored["metadata"].erase("uid");
  cluster.api.Put("heterotrainingjobs", "team/vit", restored);
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_TRUE(cluster.Status("vit").Is(ConditionType::kSucceeded)) << "with its status it is over";
  EXPECT_THAT(cluster.api.Objects("pods"), SizeIs(0));

  cluster.api.Remove("heterotrainingjobs", "team/vit");
  ASSERT_TRUE(cluster.Settle("vit"));
  restored.erase("status");
  cluster.heads.reports.clear();
  cluster.api.Put("heterotrainingjobs", "team/vit", restored);
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_FALSE(cluster.Status("vit").finished());
  EXPECT_EQ(cluster.Status("vit").attempt, 1);
  EXPECT_THAT(cluster.api.Objects("pods"), SizeIs(4));
}

// An operator of another release or namespace takes over: resuming makes what names it anew.
TEST(ReconcilerTest, ResumeAdmitsTheOperatorOfNow) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  Start(cluster, "vit");
  const auto policy = [&cluster] {
    return cluster.api.Objects("networkpolicies").at("team/vit").dump();
  };
  EXPECT_THAT(policy(), HasSubstr("hetero-system"));
  cluster.settings.operator_namespace = "elsewhere";
  cluster.Restart();
  ASSERT_TRUE(cluster.Settle("vit"));
  EXPECT_THAT(policy(), HasSubstr("hetero-system")) << "running jobs keep what they have";
  for (const bool suspend : {true, false}) {
    cluster.api.Change("heterotrainingjobs", "team/vit", [suspend](json& job) {
      job["spec"]["runPolicy"]["suspend"] = suspend;
      job["metadata"]["generation"] = suspend ? 2 : 3;
    });
    ASSERT_TRUE(cluster.Settle("vit"));
    if (suspend) cluster.HeadSays("vit", State::kStopped);
    ASSERT_TRUE(cluster.Settle("vit"));
    cluster.FinishTerminating();
    cluster.clock.Advance(Expectations::kPatience);
    ASSERT_TRUE(cluster.Settle("vit"));
  }
  EXPECT_THAT(policy(), HasSubstr("elsewhere"));
  EXPECT_THAT(cluster.api.Objects("pods"), SizeIs(4));
}

TEST(ReconcilerTest, StopStartsNoCall) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  cluster.Sync();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(cluster.Pass("vit", stop.get_token()).ok());
  EXPECT_THAT(cluster.api.writes(), SizeIs(0));
}

}  // namespace
}  // namespace hetero::reconcile
