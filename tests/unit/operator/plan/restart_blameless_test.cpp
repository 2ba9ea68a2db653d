// Ends of pods that are nobody's failure: disruptions, deletions, stops in order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using api::ExitCodeOperator;
using api::FailureAction;

TEST(RestartBlamelessTest, DisruptionsCostNothing) {
  for (const char* reason : {"Evicted", "NodeShutdown", "Preempting"}) {
    ModelCluster cluster{Job().MaxRestarts(0)};
    cluster.RunJob();
    cluster.Exit("vit-gpu-0", 137, reason);
    cluster.Settle();
    EXPECT_EQ(cluster.status().restarts, 0) << reason;
    EXPECT_EQ(cluster.status().attempt, 1) << reason;
    EXPECT_EQ(cluster.Pod("vit-gpu-0").phase, "Pending") << reason;
    EXPECT_FALSE(cluster.status().finished()) << reason;
  }
}

TEST(RestartBlamelessTest, DeletedPodIsReplacedForFree) {
  ModelCluster cluster{Job().MaxRestarts(0)};
  cluster.RunJob();
  cluster.Delete("vit-cpu-0");
  cluster.Settle();
  cluster.Exit("vit-cpu-0", 143);
  cluster.Settle();
  EXPECT_EQ(cluster.status().restarts, 0);
  cluster.Vanish("vit-cpu-0");
  cluster.Settle();
  EXPECT_EQ(cluster.Pod("vit-cpu-0").phase, "Pending");
}

TEST(RestartBlamelessTest, ResetOrShutNodesAreDisruptions) {
  struct Case {
    int exit_code;
    const char* reason;
    int restarts;
  };
  for (const Case& one : {Case{255, "Unknown", 0}, Case{137, "ContainerStatusUnknown", 0},
                          Case{137, "Terminated", 0}, Case{137, "Shutdown", 0},
                          Case{137, "NodeLost", 0}, Case{255, "Error", 1}, Case{1, "Unknown", 1}}) {
    SCOPED_TRACE(one.reason);
    ModelCluster cluster{Job()};
    cluster.RunJob();
    cluster.Exit("vit-gpu-0", one.exit_code, one.reason);
    cluster.Settle();
    EXPECT_EQ(cluster.status().restarts, one.restarts);
    EXPECT_EQ(cluster.status().attempt, 1);
    EXPECT_EQ(cluster.Pod("vit-gpu-0").phase, "Pending");
  }
}

// kubectl delete pod, or a drain: SIGTERM to one trainer once began the whole gang anew, where a
// kill costs one pod.
TEST(RestartBlamelessTest, APoliteEndCostMoreThanAKill) {
  ModelCluster cluster{Job().Gpus(3).MaxRestarts(0).Rule(2, FailureAction::kFailJob,
                                                         {ExitCodeOperator::kNotIn, {0}})};
  cluster.RunJob();
  cluster.Delete("vit-gpu-0");
  cluster.Settle();
  cluster.Exit("vit-gpu-0", 130);
  cluster.Settle();
  cluster.Vanish("vit-gpu-0");
  cluster.Settle();
  EXPECT_EQ(cluster.Pod("vit-gpu-0").phase, "Pending");
  // Told by something else than a deletion.
  cluster.Exit("vit-gpu-1", 130);
  cluster.Settle();
  EXPECT_EQ(cluster.Pod("vit-gpu-1").phase, "Pending");
  EXPECT_EQ(cluster.status().attempt, 1);
  EXPECT_EQ(cluster.status().restarts, 0);
  EXPECT_EQ(cluster.status().first_failure, std::nullopt);
  EXPECT_FALSE(cluster.status().finished());
}

TEST(RestartBlamelessTest, TheLastTrainerThatLeavesBeginsANewAttemptForFree) {
  ModelCluster cluster{Job().MaxRestarts(0)};
  cluster.RunJob();
  cluster.Exit("vit-gpu-0", 130);
  cluster.Exit("vit-gpu-1", 130);
  cluster.Settle();
  EXPECT_EQ(cluster.status().attempt, 2);
  EXPECT_EQ(cluster.status().restarts, 0);
}

TEST(RestartBlamelessTest, WithScopeGangALeaveBeginsANewAttemptForFree) {
  ModelCluster cluster{Job().MaxRestarts(0).Scope(2, api::RestartScope::kGang)};
  cluster.RunJob();
  cluster.Exit("vit-gpu-1", 130);
  cluster.Settle();
  EXPECT_EQ(cluster.status().attempt, 2);
  EXPECT_EQ(cluster.status().restarts, 0);
}

// All trainers make their checkpoint and leave. The replacement of one may be there before they
// have ended.
TEST(RestartBlamelessTest, StopInOrderBeginsANewAttemptForFree) {
  ModelCluster cluster{Job().MaxRestarts(0)};
  cluster.RunJob();
  cluster.Delete("vit-gpu-0");
  cluster.Settle();
  cluster.Vanish("vit-gpu-0");
  cluster.Settle();
  cluster.Start("vit-gpu-0");
  cluster.Settle();
  EXPECT_EQ(cluster.status().attempt, 1);
  cluster.Exit("vit-cpu-0", 0);
  cluster.Exit("vit-gpu-1", 130);
  cluster.HeadSays(HeadReport::State::kStopped);
  cluster.Pass();
  EXPECT_EQ(cluster.status().attempt, 2);
  EXPECT_EQ(cluster.status().restarts, 0);
  EXPECT_EQ(cluster.status().first_failure, std::nullopt);
  EXPECT_EQ(cluster.State(ConditionType::kRestarting), "True/Stopped");
  cluster.Exit("vit-head-0", 130);
  cluster.Settle();
  cluster.Vanish("vit-gpu-0");
  cluster.Settle();
  for (const auto& [name, pod] : cluster.pods) EXPECT_EQ(pod->attempt, 2) << name;
  EXPECT_EQ(cluster.pods.size(), 4u);
}

TEST(RestartBlamelessTest, HeadThatStoppedInOrderBeginsANewAttempt) {
  ModelCluster cluster{
      Job().MaxRestarts(0).Rule(0, FailureAction::kFailJob, {ExitCodeOperator::kNotIn, {0}})};
  cluster.RunJob();
  cluster.Exit("vit-head-0", 130);
  cluster.Pass();
  EXPECT_EQ(cluster.status().attempt, 2);
  EXPECT_FALSE(cluster.status().finished());
}

// Nothing was running that could have been told to stop: the code is the program's own.
TEST(RestartBlamelessTest, TheCodeOfAnOrderedStopIsAFailureBeforeTheStart) {
  ModelCluster cluster{Job()};
  cluster.Settle();
  cluster.StartAll();
  cluster.Exit("vit-gpu-0", 130);
  cluster.Settle();
  EXPECT_EQ(cluster.status().attempt, 1);
  EXPECT_EQ(cluster.status().restarts, 1);
}

TEST(RestartBlamelessTest, CpuWorkerThatAnEarlierHeadLetGoComesBackForFree) {
  ModelCluster cluster{Job().MaxRestarts(0).Scope(1, api::RestartScope::kGang)};
  cluster.RunJob();
  const std::string uid = cluster.Pod("vit-cpu-0").uid;
  cluster.Exit("vit-cpu-0", 0);
  cluster.HeadSays(HeadReport::State::kRunning);
  cluster.Settle();
  EXPECT_EQ(cluster.Pod("vit-cpu-0").uid, uid) << "the head that it met still runs";

  cluster.Exit("vit-head-0", 137, "Evicted");
  cluster.Settle();
  cluster.Start("vit-head-0");
  cluster.Settle();
  EXPECT_EQ(cluster.Pod("vit-cpu-0").uid, uid) << "the new head has not spoken yet";
  cluster.HeadSays(HeadReport::State::kWaiting);
  cluster.Settle();
  EXPECT_NE(cluster.Pod("vit-cpu-0").uid, uid);
  EXPECT_EQ(cluster.Pod("vit-cpu-0").phase, "Pending");
  EXPECT_EQ(cluster.status().attempt, 1);
  EXPECT_EQ(cluster.status().restarts, 0);
  EXPECT_EQ(cluster.status().first_failure->pod, "vit-head-0");
}

}  // namespace
}  // namespace hetero::plan
