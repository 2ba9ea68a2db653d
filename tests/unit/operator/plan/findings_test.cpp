// What rules find in a job: in its status, as one event each, and still there when it is over.
#include "operator/plan/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/reasons.h"
#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using State = HeadReport::State;

api::JobFinding InputBound(double seconds, bool active = true) {
  return {.rule = "InputBound",
          .message = "ranks wait 40 % of their time",
          .remedy = "set roles.cpu.replicas to 4",
          .field = "roles.cpu.replicas",
          .seconds = seconds,
          .since = base::WallTime(std::chrono::seconds(1'000'000)),
          .active = active};
}

api::JobFinding SlowWorker(const std::string& member) {
  return {.rule = "SlowWorker", .message = "it is slow\nvery", .member = member, .active = true};
}

ModelCluster TrainingJob() {
  ModelCluster cluster{Job().Cpus(2)};
  cluster.RunJob();
  return cluster;
}

// One pass after the head has told these; the events about them.
std::vector<std::string> Tell(ModelCluster& cluster, std::vector<api::JobFinding> findings) {
  cluster.HeadSays(State::kRunning);
  cluster.report().findings = std::move(findings);
  std::vector<std::string> notes;
  for (const Event& event : cluster.Pass().events) {
    if (event.reason != api::event::kFinding) continue;
    EXPECT_TRUE(event.warning);
    notes.push_back(event.note);
  }
  return notes;
}

TEST(FindingsTest, StandInTheStatusAsTheHeadToldThem) {
  ModelCluster cluster = TrainingJob();
  EXPECT_THAT(cluster.status().findings, IsEmpty());
  Tell(cluster, {InputBound(5), SlowWorker("cpu-1")});
  EXPECT_THAT(cluster.status().findings, ElementsAre(InputBound(5), SlowWorker("cpu-1")));
  Tell(cluster, {SlowWorker("cpu-1"), InputBound(9, /*active=*/false)});
  EXPECT_THAT(cluster.status().findings,
              ElementsAre(SlowWorker("cpu-1"), InputBound(9, /*active=*/false)));
}

TEST(FindingsTest, EachRuleAndMemberIsAnEventOnce) {
  ModelCluster cluster = TrainingJob();
  EXPECT_THAT(Tell(cluster, {InputBound(5), SlowWorker("cpu-1")}),
              ElementsAre("InputBound: ranks wait 40 % of their time; set roles.cpu.replicas to 4",
                          "SlowWorker (cpu-1): it is slow"));
  EXPECT_THAT(Tell(cluster, {InputBound(6), SlowWorker("cpu-1")}), IsEmpty());
  EXPECT_THAT(Tell(cluster, {InputBound(6, false)}), IsEmpty());
  EXPECT_THAT(Tell(cluster, {InputBound(7), SlowWorker("cpu-0")}),
              ElementsAre("SlowWorker (cpu-0): it is slow"));
  EXPECT_THAT(Tell(cluster, {SlowWorker("cpu-1")}), IsEmpty()) << "it was away for a while";
}

TEST(FindingsTest, AnOperatorThatStartsAgainTellsNothingTwice) {
  ModelCluster cluster = TrainingJob();
  Tell(cluster, {InputBound(5), SlowWorker("cpu-1")});
  cluster.RestartOperator();
  cluster.head.reset();
  cluster.Settle();
  EXPECT_EQ(cluster.status().findings.size(), 2u) << "nobody has told anything else";
  EXPECT_THAT(Tell(cluster, {InputBound(5), SlowWorker("cpu-1")}), IsEmpty());
}

TEST(FindingsTest, EventsAreBounded) {
  ModelCluster cluster = TrainingJob();
  size_t told = 0;
  for (int i = 0; i < 100; ++i) {
    told += Tell(cluster, {SlowWorker("cpu-" + std::to_string(i))}).size();
  }
  EXPECT_EQ(told, static_cast<size_t>(api::kMostToldFindings));
}

// A head that takes over begins with nothing.
TEST(FindingsTest, ThoseOfAnEarlierHeadHoldNoMore) {
  ModelCluster cluster = TrainingJob();
  Tell(cluster, {InputBound(5)});
  cluster.HeadSays(State::kWaiting);
  cluster.report().findings.clear();
  cluster.Pass();
  EXPECT_THAT(cluster.status().findings, ElementsAre(InputBound(5)));
  Tell(cluster, {});
  EXPECT_THAT(cluster.status().findings, ElementsAre(InputBound(5, /*active=*/false)));
}

TEST(FindingsTest, StayWhenTheJobIsOver) {
  ModelCluster cluster = TrainingJob();
  Tell(cluster, {InputBound(5)});
  cluster.HeadSays(State::kSucceeded);
  cluster.report().verdict = api::Verdict{.succeeded = true};
  cluster.report().findings = {InputBound(8)};
  cluster.Settle();
  cluster.VanishTerminating();
  cluster.Settle();
  ASSERT_TRUE(cluster.status().Is(api::ConditionType::kSucceeded));
  EXPECT_THAT(cluster.status().findings, ElementsAre(InputBound(8))) << "the last figures";
  cluster.head.reset();
  cluster.Settle();
  EXPECT_THAT(cluster.status().findings, ElementsAre(InputBound(8)));
}

// They can wait for the five seconds of progress.
TEST(FindingsTest, AreNotUrgent) {
  ModelCluster cluster = TrainingJob();
  cluster.HeadSays(State::kRunning);
  cluster.report().findings = {InputBound(5)};
  const Plan plan = cluster.Pass();
  EXPECT_TRUE(plan.write_status);
  EXPECT_FALSE(plan.status_is_urgent);
}

}  // namespace
}  // namespace hetero::plan
