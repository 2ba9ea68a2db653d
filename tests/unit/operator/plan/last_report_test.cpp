// The report of a job that the operator ends, and what one head leaves to the next.
#include "operator/plan/last_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/model_cluster.h"

namespace hetero::plan {
namespace {

using api::ConditionType;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using State = HeadReport::State;

// At its deadline, which has been stored and carried out as far as it can be.
ModelCluster PastDeadline() {
  ModelCluster cluster{Job().ActiveDeadline(100)};
  cluster.RunJob();
  cluster.Advance(seconds(90));
  cluster.Settle();
  return cluster;
}

// It once deleted the pods at once: no report of such a job was ever written.
TEST(LastReportTest, AJobThatTheOperatorEndsHasAReport) {
  ModelCluster cluster = PastDeadline();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/DeadlineExceeded");
  ASSERT_THAT(cluster.stops, SizeIs(1));
  EXPECT_EQ(cluster.stops[0].failure, "DeadlineExceeded");
  EXPECT_THAT(cluster.stops[0].reason, HasSubstr("runPolicy.activeDeadlineSeconds"));
  EXPECT_EQ(cluster.CountOf("delete pods"), 0u);
  EXPECT_TRUE(cluster.Pass().follow.has_value());

  cluster.Advance(seconds(3));
  cluster.HeadSays(State::kFailed);
  cluster.report().verdict =
      api::Verdict{.result = {.steps = 40, .report_uri = "file:///out/report.json"}};
  cluster.Settle();
  EXPECT_EQ(cluster.status().result->report_uri, "file:///out/report.json");
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/DeadlineExceeded");
  EXPECT_EQ(cluster.CountOf("delete pods"), 1u);
  EXPECT_THAT(cluster.stops, SizeIs(1));
}

// What an operator that ends a job for `reason` owes it: the head is told why and heard out, and
// only then the pods go.
void ExpectHeadHeardOut(ModelCluster& cluster, const std::string& reason, const std::string& why) {
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/" + reason);
  ASSERT_THAT(cluster.stops, SizeIs(1));
  EXPECT_EQ(cluster.stops[0].failure, reason);
  EXPECT_THAT(cluster.stops[0].reason, HasSubstr(why));
  EXPECT_EQ(cluster.CountOf("delete pods"), 0u);
  EXPECT_TRUE(cluster.Has("vit-gpu-0"));
  cluster.HeadSays(State::kFailed);
  cluster.report().verdict = api::Verdict{
      .message = why, .result = {.steps = 40, .report_uri = "file:///out/report.json"}};
  cluster.Settle();
  EXPECT_EQ(cluster.status().result->steps, 40);
  EXPECT_EQ(cluster.status().result->report_uri, "file:///out/report.json");
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/" + reason) << "and not the head's word";
  EXPECT_EQ(cluster.CountOf("delete pods"), 1u);
  EXPECT_THAT(cluster.stops, SizeIs(1));
}

TEST(LastReportTest, AJobWhoseBudgetOfRestartsIsUsedUpHasAReport) {
  ModelCluster cluster{Job().MaxRestarts(1)};
  cluster.RunJob();
  cluster.Exit("vit-cpu-0", 1);
  cluster.Settle();
  cluster.Start("vit-cpu-0");
  cluster.HeadSays(State::kRunning);
  cluster.Settle();
  EXPECT_THAT(cluster.stops, IsEmpty());
  cluster.Exit("vit-cpu-0", 1);
  cluster.Settle();
  ExpectHeadHeardOut(cluster, "MaxRestartsExceeded", "runPolicy.maxRestarts allows 1 restart");
}

TEST(LastReportTest, AJobThatAFailureRuleEndsHasAReport) {
  ModelCluster cluster{
      Job().Rule(1, api::FailureAction::kFailJob, {api::ExitCodeOperator::kIn, {3}})};
  cluster.RunJob();
  cluster.Exit("vit-cpu-0", 3);
  cluster.Settle();
  ExpectHeadHeardOut(cluster, "RuleMatched", "failureRules[0]");
}

TEST(LastReportTest, NobodyIsAskedWhenTheHeadItselfUsesUpTheBudget) {
  ModelCluster cluster{Job().MaxRestarts(0)};
  cluster.RunJob();
  cluster.Exit("vit-head-0", 137, "OOMKilled");
  cluster.head.reset();
  cluster.Settle();
  EXPECT_EQ(cluster.State(ConditionType::kFailed), "True/MaxRestartsExceeded");
  EXPECT_THAT(cluster.stops, IsEmpty());
  EXPECT_EQ(cluster.CountOf("delete pods"), 1u);
}

TEST(LastReportTest, TheDecisionIsStoredBeforeTheHeadIsTold) {
  ModelCluster cluster{Job().ActiveDeadline(100)};
  cluster.RunJob();
  cluster.Advance(seconds(90));
  cluster.Pass();
  EXPECT_TRUE(cluster.status().Is(ConditionType::kFailed));
  EXPECT_THAT(cluster.stops, IsEmpty());
  cluster.Pass();
  EXPECT_THAT(cluster.stops, SizeIs(1));
}

TEST(LastReportTest, AHeadThatDoesNotAnswerHasItsGraceAndNoMore) {
  ModelCluster cluster = PastDeadline();
  EXPECT_EQ(cluster.Pass().requeue_after, cluster.settings.last_report_grace);
  cluster.Advance(cluster.settings.last_report_grace - seconds(1));
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("delete pods"), 0u);
  cluster.Advance(seconds(1));
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("delete pods"), 1u);
  EXPECT_FALSE(cluster.status().result.has_value());
  EXPECT_EQ(cluster.status().progress, cluster.report().progress);
}

TEST(LastReportTest, AHeadThatCannotBeHeardIsToldOnceItCan) {
  ModelCluster cluster{Job().ActiveDeadline(100)};
  cluster.RunJob();
  cluster.report().connected = false;
  cluster.Advance(seconds(90));
  cluster.Settle();
  EXPECT_THAT(cluster.stops, IsEmpty());
  EXPECT_EQ(cluster.CountOf("delete pods"), 0u);
  cluster.report().connected = true;
  cluster.Settle();
  EXPECT_THAT(cluster.stops, SizeIs(1));
}

TEST(LastReportTest, LastWordsOfTheHeadsPodAreItsAnswerToo) {
  ModelCluster cluster = PastDeadline();
  cluster.head.reset();
  cluster.Exit("vit-head-0", 1, "",
               api::VerdictToJson({.message = "DeadlineExceeded", .result = {.steps = 40}}));
  cluster.Settle();
  EXPECT_EQ(cluster.status().result->steps, 40);
  EXPECT_EQ(cluster.CountOf("delete pods"), 1u);
}

TEST(LastReportTest, NobodyWaitsForAHeadThatDoesNotRunOrHasSaidAll) {
  ModelCluster never{Job().StartupDeadline(60)};
  never.Settle();
  never.Advance(seconds(61));
  never.Settle();
  EXPECT_EQ(never.State(ConditionType::kFailed), "True/StartupDeadlineExceeded");
  EXPECT_TRUE(never.Empty());

  ModelCluster failed{Job()};
  failed.RunJob();
  failed.HeadSays(State::kFailed);
  failed.report().verdict = api::Verdict{.message = "loss is not finite"};
  failed.Settle();
  EXPECT_THAT(failed.stops, IsEmpty());
  EXPECT_EQ(failed.CountOf("delete pods"), 1u);
}

TEST(LastReportTest, ATimeToLiveWaitsForTheReport) {
  ModelCluster cluster{Job().ActiveDeadline(100).Ttl(0)};
  cluster.RunJob();
  cluster.Advance(seconds(90));
  cluster.Settle();
  EXPECT_FALSE(cluster.job_deleted);
  cluster.Advance(seconds(60));
  cluster.Pass();
  EXPECT_TRUE(cluster.job_deleted);
}

TEST(LastReportTest, AnOperatorThatIsReplacedTellsTheHeadAgain) {
  ModelCluster cluster = PastDeadline();
  cluster.head.reset();  // of the process
  cluster.Settle();
  EXPECT_EQ(cluster.CountOf("delete pods"), 0u);
  cluster.HeadSays(State::kRunning);
  cluster.Settle();
  EXPECT_THAT(cluster.stops, SizeIs(2));
}

constexpr char kHistory[] = "aGlzdG9yeQ==";

std::string HistoryOfHead(const ModelCluster& cluster) {
  return cluster.origins.at("vit-head-0")->history;
}

// After a suspension the report once knew nothing of the time before it.
TEST(PastTest, WhatTheHeadKnewOutlivesItAndASuspension) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  EXPECT_EQ(HistoryOfHead(cluster), "");
  cluster.report().history = kHistory;
  cluster.Settle();
  EXPECT_EQ(cluster.status().history, kHistory);

  cluster.Exit("vit-head-0", 137, "OOMKilled");
  cluster.head.reset();
  cluster.Settle();
  EXPECT_EQ(HistoryOfHead(cluster), kHistory);

  cluster.StartAll();
  cluster.HeadSays(State::kRunning);
  cluster.report().history = "bmV3ZXI=";
  cluster.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = true; });
  cluster.Settle();
  for (const char* pod : {"vit-head-0", "vit-cpu-0", "vit-gpu-0", "vit-gpu-1"}) cluster.Vanish(pod);
  cluster.head.reset();
  cluster.Settle();
  cluster.Advance(seconds(1000));
  cluster.ChangeSpec([](api::Spec& spec) { spec.run_policy.suspend = false; });
  cluster.Settle();
  EXPECT_EQ(cluster.status().attempt, 2);
  EXPECT_EQ(HistoryOfHead(cluster), "bmV3ZXI=");
  EXPECT_EQ(cluster.origins["vit-head-0"]->attempt_cause, "resumed after a suspension");
}

TEST(PastTest, ANewAttemptKnowsWhyItBegan) {
  ModelCluster cluster{Job().Scope(2, api::RestartScope::kGang)};
  cluster.RunJob();
  cluster.Exit("vit-gpu-1", 137, "OOMKilled");
  cluster.Settle();
  for (const char* pod : {"vit-head-0", "vit-cpu-0", "vit-gpu-0"}) cluster.Vanish(pod);
  cluster.Settle();
  EXPECT_THAT(cluster.origins["vit-head-0"]->attempt_cause,
              HasSubstr("gpu-1 failed: OOMKilled, exit code 137"));
}

TEST(PastTest, AHistoryOfAnotherAttemptIsNotTaken) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.report().history = kHistory;
  cluster.report().attempt = 7;
  cluster.Settle();
  EXPECT_EQ(cluster.status().history, "");
}

TEST(PastTest, NewsOfTheHistoryAloneWaitsAsProgressDoes) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.report().history = kHistory;
  const Plan plan = cluster.Pass();
  EXPECT_TRUE(plan.write_status);
  EXPECT_FALSE(plan.status_is_urgent);
}

TEST(PastTest, AFinishedJobHasNoUseForIt) {
  ModelCluster cluster{Job()};
  cluster.RunJob();
  cluster.report().history = kHistory;
  cluster.Settle();
  cluster.Exit("vit-head-0", 0);
  cluster.head.reset();
  cluster.Settle();
  EXPECT_EQ(cluster.status().history, "");
}

}  // namespace
}  // namespace hetero::plan
