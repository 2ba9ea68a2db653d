#include "operator/plan/autoscale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using ::testing::Contains;
using State = HeadReport::State;

int CountCpus(const ModelCluster& cluster) {
  int count = 0;
  for (const auto& [name, pod] : cluster.pods) count += pod->role == "cpu" && !pod->deletion_time;
  return count;
}

TEST(AutoscaleTest, WantedReplicas) {
  struct Case {
    const char* name;
    Job job;
    int stored;  // roleStatuses.desired; -1: nothing stored
    int wanted;
  };
  const std::vector<Case> cases = {
      {"off: the spec", Job().Cpus(2), 5, 2},
      {"at first the spec", Job().Cpus(2).Autoscale(1, 4), -1, 2},
      {"first within bounds", Job().Cpus(0).Autoscale(1, 4), -1, 1},
      {"then the status", Job().Cpus(2).Autoscale(1, 4), 3, 3},
      {"none", Job().Cpus(2).Autoscale(0, 4), 0, 0},
      {"lower bound raised", Job().Cpus(2).Autoscale(2, 4), 1, 2},
      {"upper bound lowered", Job().Cpus(2).Autoscale(1, 2), 4, 2},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    api::JobStatus status;
    if (one.stored >= 0) status.role_statuses = {{.name = "cpu", .desired = one.stored}};
    const api::Spec& spec = one.job.job().spec;
    EXPECT_EQ(WantedReplicas(spec, status, spec.roles[1]), one.wanted);
    EXPECT_EQ(WantedReplicas(spec, status, spec.roles[2]), 2) << "trainers never";
  }
}

TEST(AutoscaleTest, FollowsTheHeadWithinBounds) {
  struct Case {
    const char* name;
    int needed;
    State state;
    bool connected;
    int pods;
    int events;
  };
  const std::vector<Case> cases = {
      {"up", 4, State::kRunning, true, 4, 1},
      {"beyond the upper bound", 9, State::kRunning, true, 5, 1},
      {"down", 1, State::kRunning, true, 1, 1},
      {"below the lower bound", 0, State::kRunning, true, 1, 1},
      {"enough", 2, State::kRunning, true, 2, 0},
      {"not while it waits", 4, State::kWaiting, true, 2, 0},
      {"not by old words", 4, State::kRunning, false, 2, 0},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    ModelCluster cluster{Job().Cpus(2).Autoscale(1, 5)};
    cluster.RunJob();
    cluster.sizing["cpu"] = {one.needed, "each step waits 41 % for data"};
    cluster.HeadSays(one.state);
    cluster.report().connected = one.connected;
    cluster.Settle();
    EXPECT_EQ(CountCpus(cluster), one.pods);
    EXPECT_EQ(cluster.status().role_statuses[1].desired, one.pods);
    EXPECT_EQ(cluster.CountOf("Scaled"), static_cast<size_t>(one.events));
    EXPECT_TRUE(cluster.status().Is(ConditionType::kPodsCreated));
    EXPECT_EQ(cluster.status().attempt, 1);
  }
}

TEST(AutoscaleTest, TheStatusIsWrittenBeforeAPodIsMadeOrDeleted) {
  ModelCluster cluster{Job().Cpus(2).Autoscale(1, 5)};
  cluster.RunJob();
  cluster.sizing["cpu"] = {3, ""};
  cluster.HeadSays(State::kRunning);
  const Plan scaled = cluster.Pass();
  EXPECT_TRUE(scaled.write_status && scaled.status_is_urgent);
  EXPECT_TRUE(scaled.stages.empty());
  ASSERT_EQ(scaled.events.size(), 1u);
  EXPECT_EQ(scaled.events[0].note, "Role cpu: from 2 to 3 replicas");
  cluster.Pass();
  EXPECT_TRUE(cluster.Has("vit-cpu-2"));
}

TEST(AutoscaleTest, TheHighestIndicesGoAndAreNoFailures) {
  ModelCluster cluster{Job().Cpus(4).Autoscale(1, 5).MaxRestarts(0)};
  cluster.RunJob();
  cluster.sizing["cpu"] = {2, ""};
  cluster.HeadSays(State::kRunning);
  cluster.Settle();
  EXPECT_FALSE(cluster.Pod("vit-cpu-0").deletion_time);
  EXPECT_FALSE(cluster.Pod("vit-cpu-1").deletion_time);
  EXPECT_TRUE(cluster.Pod("vit-cpu-2").deletion_time);
  EXPECT_TRUE(cluster.Pod("vit-cpu-3").deletion_time);
  cluster.Exit("vit-cpu-2", 143);
  cluster.Exit("vit-cpu-3", 1);
  cluster.Settle();
  EXPECT_EQ(cluster.status().restarts, 0);
  EXPECT_EQ(cluster.status().first_failure, std::nullopt);
  EXPECT_EQ(cluster.status().role_statuses[1].failed, 0);
  // Wanted again while they still go.
  cluster.sizing["cpu"] = {4, ""};
  cluster.HeadSays(State::kRunning);
  cluster.Settle();
  EXPECT_EQ(cluster.status().restarts, 0);
  cluster.Vanish("vit-cpu-2");
  cluster.Vanish("vit-cpu-3");
  cluster.Settle();
  EXPECT_EQ(CountCpus(cluster), 4);
}

TEST(AutoscaleTest, ARestartKeepsTheSize) {
  ModelCluster cluster{Job().Cpus(2).Autoscale(1, 5)};
  cluster.RunJob();
  cluster.sizing["cpu"] = {4, ""};
  cluster.HeadSays(State::kRunning);
  cluster.Settle();
  cluster.StartAll();
  cluster.sizing.clear();
  cluster.Exit("vit-gpu-0", 1);
  cluster.Exit("vit-gpu-1", 1);
  cluster.Settle();
  EXPECT_EQ(cluster.status().attempt, 2);
  cluster.pods.clear();
  cluster.Settle();
  EXPECT_EQ(CountCpus(cluster), 4);
}

TEST(CheckpointsTest, TroubleIsAConditionAndAnEvent) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  EXPECT_EQ(cluster.State(ConditionType::kCheckpointFailing), "False/NoneFailed");
  cluster.report().checkpoint_problem = "gpu-0: no space left on device";
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kCheckpointFailing), "True/WriteFailed");
  EXPECT_EQ(cluster.Condition(ConditionType::kCheckpointFailing).message,
            "gpu-0: no space left on device");
  EXPECT_EQ(cluster.CountOf("CheckpointFailed"), 1u);
  cluster.report().connected = false;
  cluster.report().checkpoint_problem.clear();
  cluster.Settle();
  EXPECT_TRUE(cluster.status().Is(ConditionType::kCheckpointFailing)) << "silence proves nothing";
  cluster.report().connected = true;
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kCheckpointFailing), "False/Recovered");
  EXPECT_THAT(cluster.events, Contains("CheckpointWritten"));
}

}  // namespace
}  // namespace hetero::plan
