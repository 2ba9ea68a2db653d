#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using api::ExitCodeOperator;
using api::FailureAction;
using api::FailureReason;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(RestartTest, FailedTrainerIsCountedThenDeletedThenReplacedAlone) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  const std::string uid = cluster.Pod("vit-gpu-1").uid;
  cluster.Exit("vit-gpu-1", 139, "Error", "segmentation fault");

  const Plan counted = cluster.Pass();
  EXPECT_THAT(counted.status.uncounted, ElementsAre(uid));
  EXPECT_THAT(counted.settled, ElementsAre(uid));
  EXPECT_EQ(counted.status.restarts, 1);
  EXPECT_EQ(counted.status.role_statuses[2].restarts, 1);
  EXPECT_EQ(counted.status.first_failure->pod, "vit-gpu-1");
  EXPECT_EQ(counted.status.first_failure->exit_code, 139);
  EXPECT_EQ(counted.status.first_failure->message, "segmentation fault");
  EXPECT_THAT(counted.stages, IsEmpty());
  EXPECT_TRUE(counted.status_is_urgent);

  const Plan deleted = cluster.Pass();
  ASSERT_EQ(deleted.stages.size(), 1u);
  EXPECT_EQ(std::get<DeleteChild>(deleted.stages[0][0]).uid, uid);
  ASSERT_EQ(cluster.exits.size(), 1u);
  EXPECT_EQ(cluster.exits[0].role, "gpu");
  EXPECT_EQ(cluster.exits[0].index, 1);
  EXPECT_EQ(cluster.exits[0].exit_code, 139);
  EXPECT_TRUE(cluster.exits[0].replaced);

  const Plan replaced = cluster.Pass();
  EXPECT_THAT(replaced.status.uncounted, IsEmpty());
  EXPECT_EQ(replaced.stages.size(), 1u);
  EXPECT_NE(cluster.Pod("vit-gpu-1").uid, uid);
  cluster.Settle();
  EXPECT_EQ(cluster.status().attempt, 1);
  EXPECT_EQ(cluster.status().restarts, 1);
  EXPECT_EQ(cluster.State(ConditionType::kPodsCreated), "True/AllCreated");
}

TEST(RestartTest, StaleListDoesNotCountTwice) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.Exit("vit-gpu-1", 1);
  const auto dead = cluster.pods.at("vit-gpu-1");
  cluster.Settle();
  cluster.pods["vit-gpu-1"] = dead;
  cluster.Settle();
  EXPECT_EQ(cluster.status().restarts, 1);
}

TEST(RestartTest, BudgetEndsTheJob) {
  ModelCluster cluster{Job().MaxRestarts(1)};
  cluster.RunJob();
  cluster.Exit("vit-cpu-0", 1);
  cluster.Settle();
  cluster.StartAll();
  cluster.Exit("vit-cpu-0", 1);
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/MaxRestartsExceeded");
  EXPECT_THAT(cluster.Condition(ConditionType::kFailed).message, HasSubstr("cpu-0 failed"));
  EXPECT_EQ(cluster.status().restarts, 1);
}

TEST(RestartTest, NoTrainerLeftIsOneAccident) {
  ModelCluster cluster{Job().MaxRestarts(1)};
  cluster.RunJob();
  cluster.Exit("vit-gpu-0", 137, "OOMKilled");
  cluster.Pass();  // counted before the survivor dies of it
  cluster.Advance(seconds(1));
  cluster.Exit("vit-gpu-1", 1);
  cluster.Pass();
  EXPECT_EQ(cluster.status().restarts, 1);
  EXPECT_EQ(cluster.status().attempt, 2);
  EXPECT_EQ(cluster.State(ConditionType::kRestarting), "True/NoTrainerLeft");
  EXPECT_EQ(cluster.State(ConditionType::kRunning), "False/Restarting");
  EXPECT_EQ(cluster.status().first_failure->pod, "vit-gpu-0");
  cluster.Settle();
  EXPECT_TRUE(cluster.Pod("vit-head-0").deletion_time);
  cluster.Vanish("vit-head-0");
  cluster.Vanish("vit-cpu-0");
  cluster.Settle();
  for (const auto& [name, pod] : cluster.pods) EXPECT_EQ(pod->attempt, 2) << name;
  EXPECT_EQ(cluster.pods.size(), 4u);
  EXPECT_EQ(cluster.State(ConditionType::kRestarting), "False/Completed");
  EXPECT_EQ(cluster.status().restarts, 1);
}

TEST(RestartTest, GangScope) {
  ModelCluster cluster{Job().Scope(1, api::RestartScope::kGang)};
  cluster.RunJob();
  cluster.Exit("vit-cpu-0", 1);
  cluster.Settle();
  EXPECT_EQ(cluster.status().attempt, 2);
  EXPECT_EQ(cluster.status().restarts, 1);
  EXPECT_TRUE(cluster.Pod("vit-gpu-0").deletion_time);
}

TEST(RestartTest, FirstMatchingRuleWins) {
  struct Case {
    const char* name;
    Job job;
    int exit_code;
    const char* reason;
    const char* failed;  // state of condition Failed
    int attempt;
    int restarts;
    bool replaced;
  };
  const api::ExitCodes three{ExitCodeOperator::kIn, {3}};
  const api::ExitCodes not_three{ExitCodeOperator::kNotIn, {3}};
  const std::vector<Case> cases = {
      {"fail by code", Job().Rule(1, FailureAction::kFailJob, three), 3, "Error",
       "True/RuleMatched", 1, 0, false},
      {"other code", Job().Rule(1, FailureAction::kFailJob, three), 4, "Error",
       "Unknown/NotFinished", 1, 1, true},
      {"not in", Job().Rule(1, FailureAction::kRestartGang, not_three), 4, "Error",
       "Unknown/NotFinished", 2, 1, false},
      {"out of memory", Job().Rule(1, FailureAction::kFailJob, FailureReason::kOomKilled), 137,
       "OOMKilled", "True/RuleMatched", 1, 0, false},
      {"first wins",
       Job().Rule(1, FailureAction::kIgnore, three).Rule(1, FailureAction::kFailJob, three), 3,
       "Error", "Unknown/NotFinished", 1, 0, false},
      {"disruption can fail", Job().Rule(1, FailureAction::kFailJob, FailureReason::kDisruption),
       137, "Evicted", "True/RuleMatched", 1, 0, false},
      {"disrupted gang is free",
       Job().MaxRestarts(0).Rule(1, FailureAction::kRestartGang, FailureReason::kEvicted), 137,
       "Evicted", "Unknown/NotFinished", 2, 0, false},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    ModelCluster cluster{one.job};
    cluster.RunJob();
    const std::string uid = cluster.Pod("vit-cpu-0").uid;
    cluster.Exit("vit-cpu-0", one.exit_code, one.reason);
    for (int i = 0; i < 3; ++i) cluster.Pass();
    EXPECT_EQ(cluster.State(ConditionType::kFailed), one.failed);
    EXPECT_EQ(cluster.status().attempt, one.attempt);
    EXPECT_EQ(cluster.status().restarts, one.restarts);
    EXPECT_EQ(cluster.Has("vit-cpu-0") && cluster.Pod("vit-cpu-0").uid != uid &&
                  cluster.status().attempt == 1,
              one.replaced);
  }
}

TEST(RestartTest, StalledJobRestartsItsGang) {
  ModelCluster cluster{Job().StallTimeout(100)};
  cluster.RunJob();
  EXPECT_EQ(cluster.Pass().requeue_after, seconds(100));
  cluster.Advance(seconds(99));
  cluster.report().connected = false;
  cluster.Advance(seconds(9));
  EXPECT_TRUE(cluster.Pass().idle());  // silence proves nothing
  cluster.report().connected = true;
  cluster.Pass();
  EXPECT_EQ(cluster.State(ConditionType::kStalled), "True/NoStep");
  EXPECT_EQ(cluster.status().attempt, 2);
  EXPECT_EQ(cluster.status().restarts, 1);
  EXPECT_THAT(cluster.events, Contains("Stalled"));
  cluster.Pass();
  EXPECT_EQ(cluster.status().attempt, 2);
}

TEST(RestartTest, ReplacedServiceRestartsTheGang) {
  ModelCluster cluster{Job().MaxRestarts(0)};
  cluster.RunJob();
  cluster.service = nullptr;
  cluster.Settle();
  EXPECT_EQ(cluster.status().attempt, 2);
  EXPECT_EQ(cluster.status().restarts, 0);
}

TEST(RestartTest, HeadThatCrashedIsReplacedAlone) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.Exit("vit-head-0", 137, "OOMKilled", "a log's last line");
  cluster.Settle();
  EXPECT_EQ(cluster.status().attempt, 1);
  EXPECT_EQ(cluster.status().restarts, 1);
  EXPECT_EQ(cluster.State(ConditionType::kRunning), "False/Restarting");
  EXPECT_EQ(cluster.Pod("vit-head-0").phase, "Pending");
  EXPECT_THAT(cluster.exits, IsEmpty());
}

}  // namespace
}  // namespace hetero::plan
