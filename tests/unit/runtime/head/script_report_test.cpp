// The report of a job whose ranks run scripts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/head/report_builder.h"
#include "runtime/head/result.h"
#include "runtime/insight/report.h"
#include "tests/unit/runtime/head/script_job.h"

namespace hetero::head {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

v1::Heartbeat ScriptBeat(int64_t step, int64_t samples, uint64_t digest_low) {
  v1::Heartbeat heartbeat;
  v1::Progress& progress = *heartbeat.mutable_progress();
  progress.set_step(step);
  progress.set_epoch(step > 0 ? 1 : 0);
  progress.set_total_steps(40);
  progress.set_samples_consumed(samples);
  progress.set_digest_low(digest_low);
  progress.set_train_seconds(step > 0 ? 4 : 0);
  progress.set_data_wait_percent(25);
  progress.mutable_phases()->set_wait(1);
  progress.mutable_phases()->set_other(3);
  return heartbeat;
}

class ScriptRun : public Drive {
 public:
  ScriptRun() : Drive(MakeScriptJob()) { JoinAll(); }
  // The first rank's sums hold those of the state.
  void Tell(int64_t step) {
    Apply(HeartbeatReceived{20, ScriptBeat(step, 20 * step, 100)});
    Apply(HeartbeatReceived{21, ScriptBeat(step, 10 * step, 20)});
    Apply(HeartbeatReceived{30, ScriptBeat(step, 10 * step, 3)});
  }
  insight::Report Succeed() {
    for (const StreamId stream : {20, 21, 30, 10}) Finish(stream, true);
    return BuildReport(state.record(), Time());
  }
};

TEST(ScriptReportTest, TheDigestIsTheSumOfTheRanks) {
  ScriptRun run;
  run.Tell(40);
  const insight::Report report = run.Succeed();
  EXPECT_EQ(report.state, "Succeeded");
  EXPECT_EQ(report.stream_digest, "0000000000000000000000000000007b");  // 123
  EXPECT_EQ(report.samples_consumed, 1600);
  EXPECT_EQ(report.samples_per_second, 400);
  EXPECT_EQ(report.script_restarts, 0);
  EXPECT_EQ(report.message, "");
  EXPECT_EQ(BuildResult(report).stream_digest(), "0000000000000000000000000000007b");
  EXPECT_THAT(*report.verdict, HasSubstr("input-bound: 25 %"));
  ASSERT_TRUE(report.ceiling_samples_per_second.has_value());
  EXPECT_NEAR(*report.ceiling_samples_per_second, 1600.0 / 3, 1e-9) << "without the waiting";
}

TEST(ScriptReportTest, TheRateIsOfTheStepsThatWereDoneInTheTime) {
  ScriptRun run;
  for (const StreamId stream : {20, 21, 30}) {
    v1::Heartbeat heartbeat = ScriptBeat(40, stream == 20 ? 800 : 400, 1);
    heartbeat.mutable_progress()->set_first_step(30);
    run.Apply(HeartbeatReceived{stream, heartbeat});
  }
  const insight::Report report = run.Succeed();
  EXPECT_EQ(report.samples_consumed, 1600);
  EXPECT_EQ(report.samples_per_second, 100) << "ten of forty steps in four seconds";
}

TEST(ScriptReportTest, WithoutALossThereIsNone) {
  ScriptRun run;
  run.Tell(40);
  const insight::Report report = run.Succeed();
  EXPECT_FALSE(report.loss.has_value());
  EXPECT_FALSE(report.accuracy.has_value());
  EXPECT_FALSE(BuildResult(report).has_loss());
}

TEST(ScriptReportTest, WithALossThatIsNoNumberThereIsNone) {
  ScriptRun run;
  v1::Heartbeat heartbeat = ScriptBeat(40, 800, 1);
  v1::LossPoint& point = *heartbeat.add_losses();
  point.set_step(40);
  point.set_loss(std::numeric_limits<double>::quiet_NaN());
  run.Apply(HeartbeatReceived{20, heartbeat});
  run.Tell(40);
  const insight::Report report = run.Succeed();
  EXPECT_FALSE(report.loss.has_value()) << *report.loss;
  EXPECT_THAT(report.loss_curve, SizeIs(1));
}

TEST(ScriptReportTest, WhatScriptsReportIsInIt) {
  ScriptRun run;
  v1::Heartbeat first = ScriptBeat(40, 800, 1);
  first.mutable_progress()->set_loss(0.5);
  (*first.mutable_progress()->mutable_reported())["lr"] = 0.1;
  first.add_losses()->set_step(40);
  v1::EvaluationResult& evaluation = *first.add_evaluations();
  evaluation.set_step(40);
  evaluation.set_accuracy(0.75);
  evaluation.set_loss(std::numeric_limits<double>::quiet_NaN());
  v1::Heartbeat second = ScriptBeat(40, 400, 1);
  (*second.mutable_progress()->mutable_reported())["lr"] = 0.2;
  (*second.mutable_progress()->mutable_reported())["temperature"] = 60;
  (*second.mutable_progress()->mutable_reported())["bad"] = std::numeric_limits<double>::infinity();
  run.Apply(HeartbeatReceived{21, second});
  run.Apply(HeartbeatReceived{20, first});
  run.Apply(HeartbeatReceived{21, second});
  const insight::Report report = run.Succeed();
  EXPECT_EQ(report.loss, 0.5);
  EXPECT_EQ(report.accuracy, 0.75);
  EXPECT_THAT(report.loss_curve, SizeIs(1));
  EXPECT_THAT(report.reported, ElementsAre(Pair("lr", 0.1), Pair("temperature", 60)))
      << "of one name the first rank's";
}

TEST(ScriptReportTest, ReportedNamesHaveALimit) {
  ScriptRun run;
  v1::Heartbeat heartbeat = ScriptBeat(1, 1, 1);
  for (int i = 0; i < 200; ++i) {
    (*heartbeat.mutable_progress()->mutable_reported())["name" + std::to_string(i)] = 1;
  }
  (*heartbeat.mutable_progress()->mutable_reported())[std::string(1000, 'x')] = 1;
  run.Apply(HeartbeatReceived{20, heartbeat});
  EXPECT_THAT(run.state.record().reported, SizeIs(64));
}

TEST(ScriptReportTest, AStateWithoutADigestLeavesItUnproven) {
  ScriptRun run;
  run.Tell(39);
  v1::Heartbeat first = ScriptBeat(40, 800, 1);
  first.mutable_progress()->set_digest_unproven(true);
  run.Apply(HeartbeatReceived{20, first});
  const insight::Report report = run.Succeed();
  EXPECT_FALSE(report.stream_digest.has_value());
  EXPECT_THAT(report.digest_problem, HasSubstr("knows no digest"));
  EXPECT_EQ(BuildResult(report).stream_digest(), "");
}

TEST(ScriptReportTest, AnEarlyEndIsASuccessThatSaysSo) {
  ScriptRun run;
  run.Tell(12);
  const insight::Report report = run.Succeed();
  EXPECT_EQ(report.state, "Succeeded");
  EXPECT_EQ(report.message, "ended after 12 of 40 steps");
  EXPECT_THAT(insight::ToSummary(report), HasSubstr("ended after 12 of 40 steps"));
  EXPECT_THAT(insight::ToHtml(report), HasSubstr("ended after 12 of 40 steps"));
}

TEST(ScriptReportTest, AnEndWithoutAStepIsZeroSteps) {
  ScriptRun run;
  run.Tell(0);
  const insight::Report report = run.Succeed();
  EXPECT_EQ(report.message, "ended after 0 of 40 steps");
  EXPECT_EQ(report.steps, 0);
  EXPECT_EQ(report.samples_consumed, 0);
  EXPECT_THAT(report.cpu_seconds_per_sample, IsEmpty());
  EXPECT_FALSE(report.stream_digest.has_value());
  EXPECT_THAT(insight::ToHtml(report), HasSubstr("ended after 0 of 40 steps"));
  EXPECT_THAT(insight::ToJson(report), HasSubstr("\"steps\": 0"));
}

TEST(ScriptReportTest, AStoppedJobKeepsItsReason) {
  ScriptRun run;
  run.Tell(12);
  run.Apply(StopRequested{"suspended"});
  for (const StreamId stream : {20, 21, 30, 10}) run.Finish(stream, false, /*stopped=*/true);
  EXPECT_EQ(BuildReport(run.state.record(), run.Time()).message, "suspended");
}

TEST(ScriptReportTest, AJobOfTrainersSaysNothingOfScripts) {
  Drive drive;
  drive.JoinAll();
  drive.Apply(HeartbeatReceived{20, ScriptBeat(12, 240, 1)});
  for (const StreamId stream : {20, 21, 30, 10}) drive.Finish(stream, true);
  const insight::Report report = BuildReport(drive.state.record(), drive.Time());
  EXPECT_EQ(report.message, "");
  EXPECT_FALSE(report.script_restarts.has_value());
}

TEST(ScriptReportTest, FaultsKeepTheScriptsLastWords) {
  ScriptRun run;
  v1::Heartbeat heartbeat = ScriptBeat(12, 240, 1);
  heartbeat.set_broken_generation(1);
  heartbeat.mutable_script_failure()->set_generation(1);
  heartbeat.mutable_script_failure()->set_message(
      "the script of rank 0 ended with exit code 1\nTraceback (most recent call last):\nKeyError");
  run.Apply(HeartbeatReceived{20, heartbeat});
  run.Pass(std::chrono::seconds(2));
  const insight::Report report = BuildReport(run.state.record(), run.Time());
  EXPECT_EQ(report.script_restarts, 1);
  ASSERT_THAT(report.faults, SizeIs(1));
  EXPECT_THAT(report.faults[0].what, HasSubstr("Traceback (most recent call last):\nKeyError"));
}

}  // namespace
}  // namespace hetero::head
