// Processes and nodes that have fallen silent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using std::chrono::seconds;

TEST(RestartLostTest, LostTrainerIsReplacedAtTheCostOfOne) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  const std::string uid = cluster.Pod("vit-gpu-0").uid;
  cluster.Freeze("vit-gpu-0");
  cluster.HeadSays(HeadReport::State::kWaiting);
  cluster.Pass();
  EXPECT_EQ(cluster.status().restarts, 1);
  EXPECT_EQ(cluster.status().first_failure->reason, "Lost");
  const Plan plan = cluster.Pass();
  ASSERT_FALSE(plan.stages.empty());
  EXPECT_EQ(std::get<DeleteChild>(plan.stages[0][0]).grace_seconds, 5);
  EXPECT_EQ(cluster.exits[0].incarnation, cluster.Pod("vit-gpu-0").incarnation);
  cluster.Vanish("vit-gpu-0");
  cluster.Advance(seconds(1));
  cluster.Settle();
  cluster.StartAll();
  cluster.Settle();  // the head still misses the one before
  EXPECT_NE(cluster.Pod("vit-gpu-0").uid, uid);
  EXPECT_EQ(cluster.status().restarts, 1);
}

// A busy node's kubelet tells late how it ended.
TEST(RestartLostTest, HowALostTrainerHadEndedIsTheEvidence) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  const auto killed = cluster.now;
  cluster.Freeze("vit-gpu-0");
  cluster.HeadSays(HeadReport::State::kWaiting);
  cluster.Advance(seconds(5));
  cluster.Pass();
  EXPECT_EQ(cluster.status().first_failure->reason, "Lost");
  cluster.Advance(seconds(2));
  cluster.Exit("vit-gpu-0", 137, "OOMKilled", "last words");
  cluster.Change("vit-gpu-0", [&](ObservedPod& pod) { pod.finished = killed; });
  cluster.Pass();
  EXPECT_EQ(cluster.status().first_failure->reason, "OOMKilled");
  EXPECT_EQ(cluster.status().first_failure->exit_code, 137);
  EXPECT_EQ(cluster.status().first_failure->message, "last words");
  EXPECT_EQ(cluster.status().first_failure->time, killed);
  EXPECT_EQ(cluster.status().restarts, 1);
}

TEST(RestartLostTest, HowItHadEndedIsTheEvidenceOfAJobThatFailedForItToo) {
  ModelCluster cluster{Job().MaxRestarts(0)};
  cluster.RunJob();
  const auto killed = cluster.now;
  cluster.Freeze("vit-gpu-0");
  cluster.HeadSays(HeadReport::State::kWaiting);
  cluster.Advance(seconds(5));
  cluster.Pass();
  ASSERT_EQ(cluster.State(ConditionType::kFailed), "True/MaxRestartsExceeded");
  cluster.Exit("vit-gpu-0", 137, "OOMKilled");
  cluster.Change("vit-gpu-0", [&](ObservedPod& pod) { pod.finished = killed; });
  cluster.Pass();
  EXPECT_EQ(cluster.status().first_failure->reason, "OOMKilled");
}

TEST(RestartLostTest, TheEndThatItsDeletionBroughtIsNoEvidence) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.Freeze("vit-gpu-0");
  cluster.HeadSays(HeadReport::State::kWaiting);
  cluster.Pass();
  cluster.Pass();
  cluster.Advance(seconds(5));
  cluster.Exit("vit-gpu-0", 137);
  cluster.Settle();
  EXPECT_EQ(cluster.status().first_failure->reason, "Lost");
  EXPECT_EQ(cluster.status().first_failure->exit_code, std::nullopt);
}

// Times have whole seconds, and an API server that is away keeps a replacement from being met: only
// the incarnation tells it from the one that was lost.
TEST(RestartLostTest, ReplacementMadeInTheSecondOfTheLossIsNotTheLostOne) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  const int64_t incarnation = cluster.Pod("vit-gpu-0").incarnation;
  cluster.Freeze("vit-gpu-0");
  cluster.HeadSays(HeadReport::State::kWaiting);
  cluster.Settle();
  cluster.Vanish("vit-gpu-0");
  cluster.Settle();
  cluster.Start("vit-gpu-0");
  cluster.report().last_step_time = cluster.now + seconds(1);
  for (int i = 0; i < 10; ++i) {
    cluster.Advance(seconds(1));
    cluster.Settle();
  }
  EXPECT_TRUE(cluster.report().members.at("gpu-0").lost) << "it never met the new one";
  EXPECT_GT(cluster.Pod("vit-gpu-0").incarnation, incarnation);
  EXPECT_EQ(cluster.Pod("vit-gpu-0").deletion_time, std::nullopt);
  EXPECT_EQ(cluster.status().restarts, 1);
}

// The head takes the larger of two incarnations for the newer process.
TEST(RestartLostTest, IncarnationsRiseWhileClocksGoBack) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  const int64_t before = cluster.Pod("vit-gpu-0").incarnation;
  EXPECT_EQ(before, cluster.Pod("vit-gpu-1").incarnation);
  cluster.Advance(-seconds(1000));
  cluster.Exit("vit-gpu-0", 1);
  cluster.Settle();
  EXPECT_GT(cluster.Pod("vit-gpu-0").incarnation, before);
}

// The members would pass over it as one that was replaced, and the head that told would be gone.
TEST(RestartLostTest, TheIncarnationsOfHeadsRiseToo) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  const int64_t known = cluster.Pod("vit-head-0").incarnation + 1'000'000'000'000;
  cluster.report().head_incarnation = known;
  cluster.Exit("vit-head-0", 1);
  cluster.Settle();
  EXPECT_GT(cluster.Pod("vit-head-0").incarnation, known);
}

TEST(RestartLostTest, WhoWorksAtTheHeadIsNotLostByAWatchThatIsLate) {
  ModelCluster cluster{Job().MaxRestarts(0)};
  cluster.RunJob();
  for (const char* pod : {"vit-gpu-0", "vit-gpu-1"}) {
    cluster.Change(pod, [](ObservedPod& seen) {
      seen.runtime = ObservedPod::Runtime::kWaiting;
      seen.phase = "Pending";
    });
  }
  cluster.Settle();
  EXPECT_EQ(cluster.status().attempt, 1);
  EXPECT_EQ(cluster.status().role_statuses[2].running, 2);

  // Not even when its pod has not been seen yet.
  cluster.Exit("vit-gpu-0", 137, "Evicted");
  cluster.pods.erase("vit-gpu-1");
  ++cluster.report().members["gpu-1"].incarnation;
  cluster.Pass();
  EXPECT_EQ(cluster.status().attempt, 1);
  cluster.report().members["gpu-1"].connected = false;
  cluster.Pass();
  EXPECT_EQ(cluster.status().attempt, 2);
  EXPECT_EQ(cluster.State(ConditionType::kRestarting), "True/NoTrainerLeft");
}

TEST(RestartLostTest, PodsOfASilentNodeAreForcedAfterTheGrace) {
  ModelCluster cluster{Job().MaxRestarts(0)};
  cluster.RunJob();
  const std::string node = cluster.Pod("vit-gpu-0").node;
  cluster.nodes[node] = {node, false, cluster.now};
  const Plan waiting = cluster.Pass();
  EXPECT_TRUE(waiting.idle());
  EXPECT_EQ(waiting.requeue_after, cluster.settings.node_lost_grace);
  cluster.Advance(seconds(60));
  cluster.Pass();
  EXPECT_EQ(cluster.status().restarts, 0);
  EXPECT_EQ(cluster.status().first_failure->reason, "NodeLost");
  const Plan plan = cluster.Pass();
  ASSERT_FALSE(plan.stages.empty());
  EXPECT_EQ(std::get<DeleteChild>(plan.stages[0][0]).grace_seconds, 0);
}

TEST(RestartLostTest, OverdueTerminatingPodIsForced) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.Delete("vit-gpu-0");
  cluster.Settle();
  cluster.Advance(seconds(61));
  cluster.Settle();
  EXPECT_FALSE(cluster.Pod("vit-gpu-0").deletion_time);
}

}  // namespace
}  // namespace hetero::plan
