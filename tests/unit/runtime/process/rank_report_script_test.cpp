// The report of a rank that runs a script.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/fake_clock.h"
#include "runtime/feed/digest.h"
#include "runtime/process/rank_report.h"

namespace hetero::process {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr uint64_t kScriptSeed = 5;
constexpr int64_t kSamples = 25;  // of an epoch: 20, then 5 in its last step

// Two ranks of batches of 10, three epochs of two steps.
class ScriptRankReportTest : public ::testing::Test {
 protected:
  explicit ScriptRankReportTest(int32_t rank = 0)
      : schedule_({.training = {.samples = kSamples,
                                .batch_size_per_worker = 10,
                                .ranks = 2,
                                .last_batch = api::LastBatch::kKeep,
                                .epochs = 3}},
                  rank),
        report_({.rank = rank,
                 .seed = kScriptSeed,
                 .on_step_seconds = [this](double seconds) { step_seconds_.push_back(seconds); }},
                &schedule_, clock_) {
    report_.OnStart();
  }

  feed::Batch Give(int64_t step) {
    const job::SlotRange share = schedule_.training().Share(step, 0);
    feed::Batch batch;
    batch.ticket.step = step;
    batch.ticket.slots = share;
    batch.images = feed::Slab(static_cast<size_t>(share.count));
    for (int64_t i = 0; i < share.count; ++i) {
      batch.labels.push_back(0);
      batch.sample_ids.push_back(share.first + i);
      batch.crcs.push_back(static_cast<uint32_t>(i));
    }
    report_.OnBatch(batch, {.wait_seconds = waited_});
    return batch;
  }
  void FinishStep(int64_t steps_done) {
    report_.OnStep(steps_done, 10, 0, 0.1, /*has_loss=*/false);
  }

  double waited_ = 0;
  std::vector<double> step_seconds_;
  base::FakeClock clock_;
  job::Schedule schedule_;
  RankReport report_;
};

class SecondScriptRankReportTest : public ScriptRankReportTest {
 protected:
  SecondScriptRankReportTest() : ScriptRankReportTest(1) {}
};

TEST_F(ScriptRankReportTest, TheFirstRankAddsItsOwnSumToThatOfTheState) {
  const job::StreamDigest base(7, UINT64_MAX);
  report_.OnScriptPosition(3, base, /*proven=*/true);
  v1::Progress progress = report_.Take().progress();
  EXPECT_EQ(progress.step(), 3);
  EXPECT_EQ(progress.first_step(), 3);
  EXPECT_EQ(progress.samples_consumed(), kSamples + 20);
  job::StreamDigest expected = base;
  feed::AddToDigest(kScriptSeed, Give(3), &expected);
  progress = report_.Take().progress();
  EXPECT_EQ(progress.digest_high(), expected.high());
  EXPECT_EQ(progress.digest_low(), expected.low());
  EXPECT_FALSE(progress.digest_covers_job());
  EXPECT_FALSE(progress.digest_unproven());
}

TEST_F(SecondScriptRankReportTest, TheOthersAddOnlyTheirOwn) {
  report_.OnScriptPosition(3, job::StreamDigest(7, 9), /*proven=*/true);
  const v1::Progress progress = report_.Take().progress();
  EXPECT_EQ(progress.digest_high(), 0u);
  EXPECT_EQ(progress.digest_low(), 0u);
  EXPECT_EQ(progress.samples_consumed(), 0);
}

// Epochs of 25, of which the last step has 5.
TEST_F(ScriptRankReportTest, WhatCameBeforeThePositionIsCountedInWholeEpochs) {
  const std::vector<int64_t> samples = {0, 20, 25, 45, 50, 70, 75};
  for (int64_t step = 0; step < static_cast<int64_t>(samples.size()); ++step) {
    report_.OnScriptPosition(step, {}, true);
    EXPECT_EQ(report_.Take().progress().samples_consumed(), samples[step]) << "step " << step;
  }
}

TEST_F(ScriptRankReportTest, StepsThatAreDoneAgainCountOnce) {
  report_.OnScriptPosition(0, {}, true);
  job::StreamDigest expected;
  feed::AddToDigest(kScriptSeed, Give(0), &expected);
  FinishStep(1);
  const job::StreamDigest saved = expected;  // of one rank: the whole job's
  Give(1);
  FinishStep(2);
  // It has failed, and goes on from the state after step 1.
  report_.OnScriptPosition(1, saved, true);
  feed::AddToDigest(kScriptSeed, Give(1), &expected);
  FinishStep(2);
  const v1::Progress progress = report_.Take().progress();
  EXPECT_EQ(progress.digest_low(), expected.low());
  EXPECT_EQ(progress.step(), 2);
  EXPECT_EQ(progress.first_step(), 0) << "this process has done them all";
}

TEST_F(ScriptRankReportTest, AStateWithoutADigestProvesNothing) {
  report_.OnScriptPosition(3, {}, /*proven=*/false);
  EXPECT_TRUE(report_.Take().progress().digest_unproven());
  report_.OnScriptPosition(0, {}, /*proven=*/true);
  EXPECT_FALSE(report_.Take().progress().digest_unproven());
}

TEST_F(ScriptRankReportTest, TimeIsThatOfTheScriptsAloneAndWaitingIsNamed) {
  clock_.Advance(std::chrono::seconds(100));  // of start-up
  report_.OnScriptPosition(0, {}, true);
  clock_.Advance(std::chrono::seconds(4));
  waited_ = 1;
  Give(0);
  FinishStep(1);
  clock_.Advance(std::chrono::seconds(50));  // it has failed, and starts again
  report_.OnScriptPosition(0, {}, true);
  clock_.Advance(std::chrono::seconds(6));
  waited_ = 3;
  Give(0);
  FinishStep(1);
  const v1::Progress progress = report_.Take().progress();
  EXPECT_DOUBLE_EQ(progress.train_seconds(), 10);
  EXPECT_DOUBLE_EQ(progress.phases().wait(), 3);
  EXPECT_DOUBLE_EQ(progress.phases().other(), 7);
  EXPECT_DOUBLE_EQ(progress.data_wait_percent(), 30);
  EXPECT_NEAR(progress.samples_per_second(), 20.0 / 6, 1e-9) << "of the whole job";
}

// The time from one step's end to the next, and not the part of it that the script had its batch.
TEST_F(ScriptRankReportTest, AStepTakesAsLongAsUntilTheNext) {
  report_.OnScriptPosition(0, {}, /*proven=*/true);
  clock_.Advance(std::chrono::seconds(4));
  FinishStep(1);
  clock_.Advance(std::chrono::seconds(2));
  FinishStep(2);
  EXPECT_THAT(step_seconds_, ElementsAre(4, 2));
}

TEST_F(ScriptRankReportTest, LossesBecomeTheCurveWithTheTimeOfTheirStep) {
  report_.OnScriptPosition(0, {}, true);
  for (int64_t step = 1; step <= 3; ++step) {
    Give(step - 1);
    report_.OnReported({{"loss", static_cast<double>(step)}}, step);
    EXPECT_THAT(report_.Take().losses(), SizeIs(0)) << "its step goes on";
    clock_.Advance(std::chrono::milliseconds(100 * step));
    FinishStep(step);
    const v1::Heartbeat heartbeat = report_.Take();
    ASSERT_THAT(heartbeat.losses(), SizeIs(1));
    EXPECT_EQ(heartbeat.losses(0).step(), step);
    EXPECT_EQ(heartbeat.losses(0).loss(), step);
    EXPECT_DOUBLE_EQ(heartbeat.losses(0).seconds_per_step(), 0.1 * step);
    // Two steps are an epoch: the mean begins anew.
    EXPECT_DOUBLE_EQ(heartbeat.progress().loss(), step == 2 ? 1.5 : step);
  }
  report_.OnReported({{"loss", 9}}, 3);  // after the step, as at the end of the stream
  EXPECT_THAT(report_.Take().losses(), SizeIs(1));
}

// A rule of the head's looks for it; of a script nothing else shows it.
TEST_F(ScriptRankReportTest, ALossThatIsNoNumberIsToldAndLeftOutOfTheMean) {
  report_.OnScriptPosition(0, {}, true);
  for (const double loss : {3.0, std::numeric_limits<double>::quiet_NaN()}) {
    Give(0);
    report_.OnReported({{"loss", loss}}, 1);
    FinishStep(1);
    const v1::Heartbeat heartbeat = report_.Take();
    ASSERT_THAT(heartbeat.losses(), SizeIs(1));
    EXPECT_EQ(std::isfinite(heartbeat.losses(0).loss()), std::isfinite(loss));
    EXPECT_EQ(heartbeat.progress().loss(), 3);
  }
}

TEST_F(ScriptRankReportTest, AnAccuracyIsAnEvaluation) {
  report_.OnScriptPosition(0, {}, true);
  Give(0);
  FinishStep(1);
  Give(1);
  FinishStep(2);
  report_.OnReported({{"accuracy", 0.75}}, 2);
  const v1::Heartbeat heartbeat = report_.Take();
  ASSERT_THAT(heartbeat.evaluations(), SizeIs(1));
  EXPECT_EQ(heartbeat.evaluations(0).step(), 2);
  EXPECT_EQ(heartbeat.evaluations(0).epoch(), 1);
  EXPECT_EQ(heartbeat.evaluations(0).accuracy(), 0.75);
  EXPECT_TRUE(std::isnan(heartbeat.evaluations(0).loss())) << "nobody has told it";
  EXPECT_EQ(report_.last_evaluation()->accuracy(), 0.75);
}

TEST_F(SecondScriptRankReportTest, LossAndAccuracyAreTheFirstRanks) {
  report_.OnScriptPosition(0, {}, true);
  Give(0);
  report_.OnReported({{"loss", 1}, {"accuracy", 0.5}, {"gradientNorm", 2}}, 1);
  FinishStep(1);
  const v1::Heartbeat heartbeat = report_.Take();
  EXPECT_THAT(heartbeat.losses(), SizeIs(0));
  EXPECT_THAT(heartbeat.evaluations(), SizeIs(0));
  EXPECT_EQ(heartbeat.progress().loss(), 0);
  EXPECT_THAT(heartbeat.progress().reported(), UnorderedElementsAre(Pair("gradientNorm", 2)));
}

TEST_F(ScriptRankReportTest, OtherNumbersArePassedOnTheLatestOfEachName) {
  report_.OnReported({{"a", 1}, {"b", 2}}, 0);
  report_.OnReported({{"b", 3}, {"c", std::numeric_limits<double>::quiet_NaN()}}, 0);
  EXPECT_THAT(report_.Take().progress().reported(),
              UnorderedElementsAre(Pair("a", 1), Pair("b", 3)));
  for (int i = 0; i < 1000; ++i) report_.OnReported({{"x" + std::to_string(i), 1}}, 0);
  report_.OnReported({{std::string(1000, 'x'), 1}}, 0);
  EXPECT_EQ(report_.Take().progress().reported().size(), 64u);
}

}  // namespace
}  // namespace hetero::process
