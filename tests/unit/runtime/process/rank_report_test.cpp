#include "runtime/process/rank_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fake_clock.h"
#include "runtime/feed/digest.h"
#include "runtime/head/heartbeat_buffer.h"
#include "runtime/head/loss_curve.h"

namespace hetero::process {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kSeed = 5;

class RankReportTest : public ::testing::Test {
 protected:
  RankReportTest()
      : schedule_(
            {.training = {.samples = 40, .batch_size_per_worker = 10, .ranks = 1, .epochs = 2}}, 0),
        report_({.rank = 0,
                 .seed = kSeed,
                 .print = [this](const std::string& line) { lines_.push_back(line); },
                 .on_step_seconds = [this](double seconds) { steps_.push_back(seconds); }},
                &schedule_, clock_) {
    report_.OnStart();
  }

  feed::Batch MakeBatch(int64_t step) {
    feed::Batch batch;
    batch.ticket.step = step;
    batch.ticket.slots = {.first = step * 10, .count = 10};
    batch.images = feed::Slab(10);
    for (int i = 0; i < 10; ++i) {
      batch.labels.push_back(0);
      batch.sample_ids.push_back(step * 10 + i);
      batch.crcs.push_back(i);
    }
    return batch;
  }

  base::FakeClock clock_;
  job::Schedule schedule_;
  std::vector<std::string> lines_;
  std::vector<double> steps_;  // seconds
  RankReport report_;
};

TEST_F(RankReportTest, AddsUpWhatWasConsumed) {
  job::StreamDigest expected;
  for (int step = 0; step < 3; ++step) {
    const feed::Batch batch = MakeBatch(step);
    feed::AddToDigest(kSeed, batch, &expected);
    report_.OnBatch(batch, {.batches = step + 1, .tickets_reissued = 2});
  }
  const v1::Heartbeat heartbeat = report_.Take();
  EXPECT_EQ(heartbeat.counters().batches(), 3);
  EXPECT_EQ(heartbeat.counters().samples(), 30);
  EXPECT_EQ(heartbeat.counters().bytes(), 30);
  EXPECT_EQ(heartbeat.progress().samples_consumed(), 30);
  EXPECT_EQ(heartbeat.progress().digest_high(), expected.high());
  EXPECT_EQ(heartbeat.progress().tickets_reissued(), 2);
  EXPECT_FALSE(heartbeat.progress().digest_covers_job());
}

TEST_F(RankReportTest, TellsHowLongEachStepTook) {
  report_.OnStep(1, 10, 0.5, 0.25, true);
  report_.OnStep(2, 10, 0, 0.5, false);
  EXPECT_THAT(steps_, ElementsAre(0.25, 0.5));
}

TEST_F(RankReportTest, TellsTheLivesOfSampledBatches) {
  feed::Batch batch = MakeBatch(0);
  batch.times = feed::BatchTimes{.asked = clock_.WallNow(), .taken = clock_.Now()};
  clock_.Advance(std::chrono::milliseconds(10));
  report_.OnComputation(batch);
  clock_.Advance(std::chrono::milliseconds(30));
  report_.OnBatch(batch, {});
  clock_.Advance(std::chrono::milliseconds(500));
  report_.OnStep(1, 10, 0.5, 0.54, true);
  const v1::Heartbeat heartbeat = report_.Take();
  ASSERT_EQ(heartbeat.lives_size(), 1);
  EXPECT_DOUBLE_EQ(heartbeat.lives(0).handover_seconds(), 0.01);
  EXPECT_DOUBLE_EQ(heartbeat.lives(0).step_seconds(), 0.03);
  EXPECT_EQ(heartbeat.life_histograms().whole_step().count(0), 1);
  EXPECT_EQ(report_.Take().lives_size(), 0);
}

TEST_F(RankReportTest, TheJobsDigestReplacesItsOwn) {
  report_.OnBatch(MakeBatch(0), {});
  report_.OnJobDigest(job::StreamDigest(1, 2), 20);
  report_.OnBatch(MakeBatch(1), {});
  const v1::Progress progress = report_.Take().progress();
  EXPECT_TRUE(progress.digest_covers_job());
  EXPECT_EQ(progress.digest_low(), 2u);
  EXPECT_EQ(progress.samples_consumed(), 20);
}

TEST_F(RankReportTest, ReportsEachThingOnce) {
  feed::Batch batch = MakeBatch(0);
  batch.bad_samples.push_back({.slot = 3, .sample_id = 3, .replacement_id = 7, .reason = "torn"});
  report_.OnBatch(batch, {});
  report_.OnBatch(batch, {});  // the same id in a later epoch
  report_.OnStep(1, 10, 0.5, 0.1, true);
  v1::Heartbeat heartbeat = report_.Take();
  EXPECT_EQ(heartbeat.bad_samples_size(), 1);
  EXPECT_EQ(heartbeat.losses_size(), 1);
  EXPECT_EQ(heartbeat.progress().bad_samples(), 1);
  heartbeat = report_.Take();
  EXPECT_EQ(heartbeat.bad_samples_size(), 0);
  EXPECT_EQ(heartbeat.losses_size(), 0);
  EXPECT_EQ(heartbeat.progress().step(), 1);
}

// What a worker, a file system or a model says may have any length; a head takes 4 MiB.
TEST_F(RankReportTest, PassesOnNoTextWithoutALimit) {
  const std::string endless(5'000'000, 'x');
  feed::Batch batch = MakeBatch(0);
  batch.bad_samples.push_back({.slot = 3, .sample_id = 3, .replacement_id = 7, .reason = endless});
  report_.OnBatch(batch, {});
  report_.OnBreak(endless);
  report_.OnCheckpointProblem(endless);
  const v1::Heartbeat heartbeat = report_.Take();
  EXPECT_LT(heartbeat.ByteSizeLong(), size_t{16} << 10);
  EXPECT_EQ(heartbeat.bad_samples(0).reason().substr(0, 3), "xxx");
  EXPECT_EQ(heartbeat.progress().last_break().substr(0, 3), "xxx");
  EXPECT_EQ(heartbeat.progress().checkpoint_problem().substr(0, 3), "xxx");
}

// Once all of it was kept: after 175,000 steps no head took the message, nor any later one.
TEST(RankReportAwayTest, WhatAHeadMissesInAMillionStepsFitsIntoAMessage) {
  constexpr int64_t kSteps = 1'000'000, kBefore = 10'000, kBad = 25'000;
  base::FakeClock clock;
  const job::Schedule schedule(
      {.training = {.samples = kSteps, .batch_size_per_worker = 1, .ranks = 1, .epochs = 2}}, 0);
  RankReport report({}, &schedule, clock);
  report.OnStart();
  head::HeartbeatBuffer told;
  head::LossCurve curve;  // the head's
  const auto tell = [&](const v1::Heartbeat& heartbeat) {
    EXPECT_LT(heartbeat.ByteSizeLong(), size_t{1} << 20);
    for (const v1::LossPoint& point : heartbeat.losses()) curve.Add(point);
  };
  int64_t step = 0;
  const auto train = [&](int64_t until) {
    while (step < until) {
      ++step;
      report.OnStep(step, 1, 0.5, 1e-3, true);
      report.OnReported({{"accuracy", 0.5}}, step);
    }
  };
  for (int64_t until = 100; until <= kBefore; until += 100) {
    train(until);
    const v1::Heartbeat heartbeat = report.Take();
    EXPECT_EQ(heartbeat.losses_size(), 100);
    tell(heartbeat);
    told.Add(heartbeat);
  }
  train(kSteps);
  feed::Batch batch;
  for (int64_t id = 0; id < kBad; ++id) {
    batch.bad_samples.push_back({.sample_id = id, .reason = std::string(500, 'r')});
  }
  report.OnBatch(batch, {});

  const v1::Heartbeat missed = report.Take();
  EXPECT_EQ(missed.evaluations_size(), 1000);
  EXPECT_EQ(missed.evaluations(999).step(), kSteps);
  EXPECT_EQ(missed.progress().bad_samples(), kBad);
  EXPECT_EQ(missed.bad_samples(0).reason().size(), 500u);
  EXPECT_LT(missed.ByteSizeLong(), size_t{1} << 20);
  tell(told.Merge(missed));
  EXPECT_EQ(curve.points().front().step(), 1);
  EXPECT_EQ(curve.points().back().step(), kSteps);
  EXPECT_GE(curve.points().size(), 500u);
  for (size_t i = 1; i < curve.points().size(); ++i) {
    EXPECT_LE(curve.points()[i].step() - curve.points()[i - 1].step(), kSteps / 500);
  }
  int64_t bad = missed.bad_samples_size();
  for (int beat = 0; beat < 3; ++beat) {
    const v1::Heartbeat later = report.Take();
    tell(later);
    bad += later.bad_samples_size();
  }
  EXPECT_EQ(bad, kBad) << "each counts against the job's limit";
}

TEST_F(RankReportTest, PrintsALineAtTheEndOfAnEpoch) {
  for (int step = 0; step < 4; ++step) {
    clock_.Advance(std::chrono::milliseconds(250));
    report_.OnBatch(MakeBatch(step), {.wait_seconds = 0.1 * (step + 1)});
    report_.OnStep(step + 1, 10, 0.5, 0.25, true);
  }
  EXPECT_THAT(
      lines_,
      ElementsAre("rank=0 epoch=1 step=4/4 loss=0.5000 samples/s=40 wait=40.0% step=250ms"));
  EXPECT_NEAR(report_.Take().progress().samples_per_second(), 40, 0.01);
}

TEST_F(RankReportTest, PrintsALineInALongEpoch) {
  clock_.Advance(std::chrono::seconds(11));
  report_.OnStep(1, 10, 0.5, 11, true);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_THAT(lines_[0], HasSubstr("step=1/4"));
}

TEST_F(RankReportTest, LeavesTheLossOutWithoutTraining) {
  clock_.Advance(std::chrono::seconds(11));
  report_.OnStep(1, 10, 0, 1, false);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_EQ(lines_[0].find("loss"), std::string::npos);
  EXPECT_EQ(report_.Take().losses_size(), 0);
}

}  // namespace
}  // namespace hetero::process
