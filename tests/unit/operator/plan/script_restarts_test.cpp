// Scripts that failed while their pods stayed: each costs one of the job's restarts, over all
// attempts.
#include "operator/plan/script_restarts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "api/reasons.h"
#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using ::testing::HasSubstr;
using State = HeadReport::State;

constexpr char kTraceback[] =
    "gpu-0.1: exit code 1\nTraceback (most recent call last):\nValueError: no";

// The head goes on, with so many scripts that have failed in its attempt.
void HeadCounts(ModelCluster& cluster, int32_t failed) {
  cluster.HeadSays(State::kRunning);
  cluster.report().script_restarts = failed;
  cluster.report().first_failure =
      api::FirstFailure{.pod = "vit-gpu-0", .role = "gpu", .message = kTraceback};
  cluster.Settle();
}

ModelCluster Training(int max_restarts) {
  ModelCluster cluster{Job().Cpus(2).MaxRestarts(max_restarts)};
  cluster.RunJob();
  return cluster;
}

TEST(ScriptRestarts, EachCostsOneAndNoPodGoes) {
  ModelCluster cluster = Training(3);
  const size_t created = cluster.CountOf("create vit-gpu-0");
  HeadCounts(cluster, 1);
  EXPECT_EQ(cluster.status().restarts, 1);
  EXPECT_EQ(cluster.status().script_restarts, 1);
  EXPECT_EQ(cluster.status().attempt, 1);
  EXPECT_EQ(cluster.CountOf("create vit-gpu-0"), created);
  EXPECT_EQ(cluster.CountOf(api::event::kScriptFailed), 1u);
  ASSERT_TRUE(cluster.status().first_failure.has_value());
  EXPECT_EQ(cluster.status().first_failure->message, kTraceback);

  HeadCounts(cluster, 1);
  EXPECT_EQ(cluster.status().restarts, 1) << "the same one again";
  HeadCounts(cluster, 3);
  EXPECT_EQ(cluster.status().restarts, 3);
  EXPECT_EQ(cluster.State(ConditionType::kRunning), "True/TrainingStarted");
}

TEST(ScriptRestarts, JobsWithoutThemSayNothingOfThem) {
  ModelCluster cluster = Training(3);
  HeadCounts(cluster, 0);
  EXPECT_FALSE(cluster.status().script_restarts.has_value());
  EXPECT_FALSE(cluster.status().first_failure.has_value()) << "nothing failed";
}

// The head, which knows only of scripts, has counted two of three.
TEST(ScriptRestarts, PodsAndScriptsShareOneBudget) {
  ModelCluster cluster = Training(3);
  cluster.Exit("vit-cpu-0", 1, "Error");
  cluster.Settle();
  cluster.VanishTerminating();
  cluster.Settle();
  cluster.Exit("vit-cpu-1", 1, "Error");
  cluster.Settle();
  ASSERT_EQ(cluster.status().restarts, 2);
  HeadCounts(cluster, 1);
  EXPECT_EQ(cluster.status().restarts, 3);
  EXPECT_NE(cluster.State(ConditionType::kFailed).substr(0, 4), "True");

  HeadCounts(cluster, 2);
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/MaxRestartsExceeded");
  EXPECT_THAT(cluster.Condition(ConditionType::kFailed).message,
              HasSubstr("gpu-0.1: exit code 1; runPolicy.maxRestarts allows 3 restarts"));
  EXPECT_EQ(cluster.status().restarts, 3);
}

TEST(ScriptRestarts, AnotherAttemptCountsFromNothingAndTheBudgetStays) {
  ModelCluster cluster = Training(3);
  HeadCounts(cluster, 2);
  for (const char* pod : {"vit-gpu-0", "vit-gpu-1"}) {
    if (cluster.Has(pod)) cluster.Exit(pod, 1, "Error");
  }
  cluster.Settle();
  cluster.VanishTerminating();
  cluster.Settle();
  ASSERT_EQ(cluster.status().attempt, 2);
  EXPECT_EQ(cluster.status().restarts, 3);
  EXPECT_FALSE(cluster.status().script_restarts.has_value());
  cluster.StartAll();
  cluster.Settle();
  HeadCounts(cluster, 1);
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/MaxRestartsExceeded");
}

TEST(ScriptRestarts, TheHeadsVerdictCountsThemToo) {
  ModelCluster cluster = Training(3);
  cluster.HeadSays(State::kFailed);
  cluster.report().script_restarts = 2;
  cluster.report().verdict =
      api::Verdict{.message = kTraceback, .failure = {.message = kTraceback}};
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/TrainingFailed");
  EXPECT_EQ(cluster.status().restarts, 2);
  EXPECT_EQ(cluster.status().first_failure->message, kTraceback);
}

// A head's image is the user's.
TEST(ScriptRestarts, NoNumberOfAHeadOverflows) {
  ModelCluster cluster = Training(3);
  HeadCounts(cluster, -5);
  EXPECT_EQ(cluster.status().restarts, 0);
  HeadCounts(cluster, std::numeric_limits<int32_t>::max());
  EXPECT_EQ(cluster.status().restarts, 3);
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/MaxRestartsExceeded");
}

}  // namespace
}  // namespace hetero::plan
