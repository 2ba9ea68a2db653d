#include "operator/plan/accounting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using State = HeadReport::State;

// A head, a CPU worker and two trainers, together 0.20 + 0.80 + 2 * 36 = 73 dollars an hour.
Job Priced() { return Job().Prices("0.20", "0.80", "36").MaxRestarts(3); }

double Dollars(const ModelCluster& cluster) {
  return cluster.status().cost ? cluster.status().cost->dollars : -1;
}
double Doubt(const ModelCluster& cluster) {
  return cluster.status().cost ? cluster.status().cost->uncertain_dollars : -1;
}

void EndTraining(ModelCluster& cluster) {
  for (const char* pod : {"vit-head-0", "vit-cpu-0", "vit-gpu-0", "vit-gpu-1"}) {
    cluster.Exit(
        pod, 0, "",
        api::VerdictToJson({.succeeded = true, .message = "done", .result = {.steps = 9}}));
  }
}

TEST(AccountingTest, NothingIsSaidOfAJobWithoutPrices) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  EXPECT_EQ(cluster.status().cost, std::nullopt);
}

TEST(AccountingTest, AWholeLifeToTheSecond) {
  ModelCluster cluster(Priced());
  cluster.Settle();
  cluster.Advance(seconds(30));  // nobody has a node yet
  cluster.StartAll();
  cluster.Settle();
  cluster.HeadSays(State::kRunning);
  cluster.Settle();
  cluster.Advance(seconds(3600));
  EndTraining(cluster);
  cluster.Settle();
  EXPECT_TRUE(cluster.status().Is(ConditionType::kSucceeded));
  EXPECT_EQ(Dollars(cluster), 73.00);
  EXPECT_EQ(Doubt(cluster), 0);
  EXPECT_EQ(cluster.status().cost->as_of, cluster.now);
}

TEST(AccountingTest, ItIsWrittenSeldomForItsOwnSake) {
  ModelCluster cluster(Priced());
  cluster.RunJob();
  const size_t writes = cluster.CountOf("status");
  for (int i = 0; i < 60; ++i) {
    cluster.Advance(seconds(60));
    cluster.HeadSays(State::kRunning);
    cluster.report().last_step_time = cluster.now;
    cluster.Settle();
  }
  const size_t hourly = cluster.CountOf("status") - writes;
  EXPECT_GE(hourly, 10U);
  EXPECT_LE(hourly, 13U);
  EXPECT_NEAR(Dollars(cluster), 73, 7);
}

TEST(AccountingTest, AReplacedPodAndARestartedOperator) {
  ModelCluster cluster(Priced());
  cluster.RunJob();
  cluster.Advance(seconds(100));
  cluster.Exit("vit-gpu-1", 137, "Evicted");
  cluster.Settle();
  cluster.RestartOperator();
  cluster.Advance(seconds(100));
  cluster.StartAll();
  cluster.Settle();
  cluster.Advance(seconds(1000));
  EndTraining(cluster);
  cluster.Settle();
  EXPECT_NEAR(Dollars(cluster), cluster.TrueDollars(), 1e-6);
  EXPECT_EQ(Doubt(cluster), 0);
}

TEST(AccountingTest, AVanishedPodIsDoubtedForAsLongAsNobodyLooked) {
  ModelCluster cluster(Priced());
  cluster.RunJob();
  cluster.Advance(minutes(10));
  cluster.Settle();
  cluster.Advance(seconds(100));
  cluster.Vanish("vit-gpu-1");  // while no operator was there
  cluster.Advance(seconds(100));
  cluster.RestartOperator();
  cluster.Settle();
  const double off = std::abs(Dollars(cluster) - cluster.TrueDollars());
  EXPECT_GT(off, 0);
  EXPECT_LE(off, Doubt(cluster) + 0.11);  // the others are billed with a delay of 10 s
  EXPECT_NEAR(Doubt(cluster), 0.01 * 210, 0.011);
}

TEST(AccountingTest, OneThatEndsBetweenTwoLooksIsSettledToTheSecond) {
  ModelCluster cluster(Priced());
  cluster.RunJob();
  cluster.Advance(seconds(50));
  cluster.Exit("vit-gpu-1", 1);
  const base::WallTime end = cluster.now;
  cluster.Advance(seconds(5));
  cluster.Vanish("vit-gpu-1");
  cluster.Settle();
  cluster.Advance(seconds(20));
  EndTraining(cluster);
  cluster.Settle();
  EXPECT_EQ(Doubt(cluster), 0);
  EXPECT_NEAR(Dollars(cluster), cluster.TrueDollars(), 1e-6) << base::ToSeconds(cluster.now - end);
}

TEST(AccountingTest, ShareOfANodeByThePriceSheet) {
  ModelCluster cluster{Job().Cpus(2)};
  cluster.settings.price_sheet = true;
  cluster.Settle();
  cluster.StartAll();
  const auto node = [&cluster](const std::string& name, int64_t paid, int64_t on_demand) {
    cluster.nodes[name] = {.name = name,
                           .price = api::NodePrice{paid, on_demand},
                           .allocatable = {{"cpu", 8}, {"gpu", 4}}};
  };
  node("node-gpu-0", 40'000'000, 40'000'000);  // 40 dollars an hour; the trainer has half of it
  node("node-cpu-0", 1'000'000, 3'000'000);    // spot; the worker has a quarter
  node("node-head-0", 1'000'000, 1'000'000);   // and the head asks for nothing
  cluster.Change("vit-gpu-0", [](ObservedPod& pod) { pod.requests = {{"cpu", 1}, {"gpu", 2}}; });
  cluster.Change("vit-cpu-0", [](ObservedPod& pod) { pod.requests = {{"cpu", 2}}; });
  cluster.Settle();
  cluster.HeadSays(State::kRunning);
  cluster.Settle();
  cluster.Advance(seconds(1800));
  cluster.nodes.clear();  // what was recorded stands
  for (const char* pod : {"vit-head-0", "vit-cpu-0", "vit-cpu-1", "vit-gpu-0", "vit-gpu-1"}) {
    cluster.Exit(pod, 0, "", api::VerdictToJson({.succeeded = true, .message = "done"}));
  }
  cluster.Settle();
  EXPECT_EQ(Dollars(cluster), 10.125);  // half an hour of 20 and of 0.25
  EXPECT_EQ(cluster.status().cost->on_demand_dollars, 10.375);
  EXPECT_EQ(cluster.status().cost->priceless_pods, 3);
}

TEST(AccountingTest, WaitingForDataFollowsTheHead) {
  ModelCluster cluster(Priced());
  cluster.RunJob();
  cluster.Advance(seconds(1000));
  cluster.HeadSays(State::kRunning);
  cluster.report().progress = api::JobProgress{.step = 100, .data_wait_percent = 40};
  cluster.Settle();
  const api::JobCost& cost = *cluster.status().cost;
  ASSERT_TRUE(cost.waiting_dollars);
  // The trainers cost 0.02 dollars a second while the job trained.
  EXPECT_NEAR(*cost.waiting_dollars, 0.4 * 0.02 * 1000, 0.3);
  EXPECT_LT(*cost.waiting_dollars, cost.dollars);
}

TEST(BudgetTest, TheTrainingIsSavedAndTheJobFails) {
  ModelCluster cluster(Priced().MaxDollars("7.30"));  // 360 s
  cluster.RunJob();
  cluster.Advance(seconds(300));
  cluster.HeadSays(State::kRunning);
  cluster.report().last_step_time = cluster.now;
  const Plan plan = cluster.Pass();
  EXPECT_FALSE(cluster.status().finished());
  ASSERT_TRUE(plan.requeue_after);
  EXPECT_LE(*plan.requeue_after, seconds(60));
  cluster.Advance(seconds(60));
  cluster.HeadSays(State::kRunning);
  cluster.report().last_step_time = cluster.now;
  cluster.Pass();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/BudgetExceeded");
  EXPECT_THAT(cluster.Condition(ConditionType::kFailed).message, HasSubstr("of 7.30 dollars"));
  EXPECT_EQ(cluster.stops.size(), 0U);
  cluster.Pass();
  ASSERT_EQ(cluster.stops.size(), 1U);  // it saves, and writes its report
  EXPECT_EQ(cluster.stops[0].failure, "BudgetExceeded");
  EXPECT_TRUE(cluster.Has("vit-gpu-0"));
}

TEST(BudgetTest, ARaisedBudgetHolds) {
  ModelCluster cluster(Priced().MaxDollars("7.30"));
  cluster.RunJob();
  cluster.ChangeSpec([](api::Spec& spec) { spec.run_policy.max_dollars = "100"; });
  cluster.Advance(seconds(1000));
  cluster.HeadSays(State::kRunning);
  cluster.report().last_step_time = cluster.now;
  cluster.Settle();
  EXPECT_FALSE(cluster.status().finished());
}

TEST(BudgetTest, WithoutAnyPriceItIsRefused) {
  ModelCluster cluster(Job().MaxDollars("7.30"));
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/InvalidSpec");
  EXPECT_THAT(cluster.Condition(ConditionType::kFailed).message,
              HasSubstr("runPolicy.maxDollars: nothing of the job has a price"));
  ModelCluster with_sheet(Job().MaxDollars("7.30"));
  with_sheet.settings.price_sheet = true;
  with_sheet.Settle();
  EXPECT_FALSE(with_sheet.status().finished());
}

}  // namespace
}  // namespace hetero::plan
