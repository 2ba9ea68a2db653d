#include "operator/reconcile/reconciler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/job_resource.h"
#include "fake_cluster.h"

namespace hetero::reconcile {
namespace {

using api::ConditionType;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using State = plan::HeadReport::State;

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
  cluster.Start("vit");
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
  cluster.Start("vit");
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

TEST(ReconcilerTest, ProgressIsWrittenEveryFiveSecondsAtMost) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  cluster.Start("vit");
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

// However a head's findings come and go.
TEST(ReconcilerTest, FindingsAreWrittenEveryFiveSecondsAtMost) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  cluster.Start("vit");
  const size_t before = cluster.api.writes().size();
  for (int i = 1; i <= 100; ++i) {
    cluster.clock.Advance(std::chrono::milliseconds(200));
    plan::HeadReport& report = cluster.heads.reports["team/vit"];
    report.findings = {
        {.rule = "InputBound", .message = "ranks wait", .seconds = i / 5.0, .active = i % 2 == 0}};
    report.last_heard = cluster.clock.WallNow();
    cluster.Sync();
    ASSERT_TRUE(cluster.Pass("vit").ok());
    if (i == 50) cluster.Restart();
  }
  EXPECT_EQ(cluster.Status("vit").findings.size(), 1u);
  EXPECT_LE(cluster.api.writes().size() - before, 6u) << "the second operator knows of no write";
}

TEST(ReconcilerTest, AJobThatIsGoneIsForgotten) {
  FakeCluster cluster;
  cluster.CreateJob("vit");
  cluster.Start("vit");
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
  cluster.Start("vit");
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
  cluster.Start("vit");
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
