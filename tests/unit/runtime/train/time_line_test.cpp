// Where a rank's time goes, and what the ceiling probe may not touch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>

#include "base/fake_clock.h"
#include "tests/unit/runtime/train/rank_runner.h"

namespace hetero::train {
namespace {

using ::testing::DoubleNear;
using ::testing::Gt;
using ::testing::SizeIs;

TEST(TimeLineTest, EachStepsPhasesSumToItsTimeOnEveryRank) {
  TestJob job;
  job.training = MakeTraining("mlp", 16, 12);
  job.training.evaluation = api::Evaluation{.every_steps = 4};
  job.samples = 16 * 2 * 12;
  job.validation_samples = 40;
  // A rank's time moves while it waits for a batch, by unlike lengths.
  std::array<base::FakeClock, 2> clocks;
  job.clocks = {&clocks[0], &clocks[1]};
  job.before_batch = [&clocks](int32_t rank, int64_t index, std::vector<std::stop_source>&) {
    clocks[rank].Advance(std::chrono::milliseconds(1 + (rank + index) % 3 * 4));
    return absl::OkStatus();
  };
  for (const RankRecord& record : RunRanks(job, 2)) {
    ASSERT_TRUE(record.status.ok()) << record.status;
    ASSERT_THAT(record.steps, SizeIs(12));
    double steps = 0;
    for (const StepRecord& step : record.steps) {
      EXPECT_THAT(step.phases.Sum(), DoubleNear(step.seconds, 1e-9));
      EXPECT_EQ(step.phases.evaluation, 0);
      steps += step.seconds;
    }
    EXPECT_THAT(record.phases.Sum(), DoubleNear(record.train_seconds, 1e-6));
    // No clock moves during anything else.
    EXPECT_THAT(record.phases.wait, DoubleNear(record.train_seconds, 1e-6));
    EXPECT_THAT(record.train_seconds, Gt(0.012));
    EXPECT_LE(steps, record.train_seconds);
  }
}

// Bit for bit: the same losses, parameters and digest.
void ExpectProbeChangesNothing(TestJob job, int32_t ranks) {
  const std::vector<RankRecord> plain = RunRanks(job, ranks);
  job.ceiling_probe_steps = 6;
  const std::vector<RankRecord> probed = RunRanks(job, ranks);
  for (size_t rank = 0; rank < plain.size(); ++rank) {
    ASSERT_TRUE(plain[rank].status.ok()) << plain[rank].status;
    ASSERT_TRUE(probed[rank].status.ok()) << probed[rank].status;
    EXPECT_EQ(plain[rank].ceiling, 0);
    EXPECT_THAT(probed[rank].ceiling, Gt(0));
    EXPECT_EQ(probed[rank].epoch_crcs, plain[rank].epoch_crcs);
    EXPECT_EQ(probed[rank].sample_ids, plain[rank].sample_ids);
    EXPECT_EQ(probed[rank].digest_high, plain[rank].digest_high);
    EXPECT_EQ(probed[rank].digest_low, plain[rank].digest_low);
    ASSERT_EQ(probed[rank].steps.size(), plain[rank].steps.size());
    for (size_t i = 0; i < plain[rank].steps.size(); ++i) {
      EXPECT_EQ(probed[rank].steps[i].loss, plain[rank].steps[i].loss) << "step " << i;
    }
  }
}

TEST(CeilingProbeTest, TrainingIsTheSameWithAndWithoutOnOneRank) {
  TestJob job;
  job.training = MakeTraining("mlp", 16, 8);
  job.samples = 16 * 8;
  ExpectProbeChangesNothing(job, 1);
}

TEST(CeilingProbeTest, TrainingIsTheSameWithAndWithoutOnThreeRanksWithBuffers) {
  TestJob job;
  job.image = {32, 32, 3};
  job.training = MakeTraining("resnet18", 2, 3);
  job.samples = 2 * 3 * 3;
  ExpectProbeChangesNothing(job, 3);
}

TEST(CeilingProbeTest, ADatasetWithoutAFullStepIsTrainedAllTheSame) {
  TestJob job;
  job.training = MakeTraining("mlp", 16, 4);
  job.samples = 20;
  job.ceiling_probe_steps = 4;
  for (const RankRecord& record : RunRanks(job, 2)) {
    EXPECT_TRUE(record.status.ok()) << record.status;
    EXPECT_EQ(record.ceiling, 0);
    EXPECT_THAT(record.steps, SizeIs(4));
  }
}

// Many more steps than training has.
TEST(CeilingProbeTest, TrainingsTimeIsWithoutIt) {
  TestJob job;
  job.image = {32, 32, 3};
  job.training = MakeTraining("resnet18", 4, 2);
  job.samples = 8;
  job.ceiling_probe_steps = 40;
  const base::Instant begin = base::Clock::Real().Now();
  const RankRecord record = RunRanks(job, 1)[0];
  const double whole = base::ToSeconds(base::Clock::Real().Now() - begin);
  ASSERT_TRUE(record.status.ok()) << record.status;
  EXPECT_LT(record.train_seconds, whole / 2);
  EXPECT_THAT(record.phases.Sum(), DoubleNear(record.train_seconds, 1e-6));
}

// The probe's batch is that of the first step, which somebody has to wait for.
TEST(CeilingProbeTest, TheFirstBatchIsWaitedForAllTheSame) {
  TestJob job;
  job.training = MakeTraining("mlp", 4, 8);
  job.samples = 64;
  job.ceiling_probe_steps = 4;
  base::FakeClock clock;
  job.clock = &clock;
  job.before_batch = [&clock](int32_t, int64_t index, std::vector<std::stop_source>&) {
    clock.Advance(index == 0 ? std::chrono::seconds(100) : std::chrono::seconds(1));
    return absl::OkStatus();
  };
  const RankRecord record = RunRanks(job, 1)[0];
  ASSERT_TRUE(record.status.ok()) << record.status;
  EXPECT_THAT(record.phases.wait, DoubleNear(107, 1e-6));
  EXPECT_THAT(record.train_seconds, DoubleNear(107, 1e-6));
}

TEST(CeilingProbeTest, InputThatFailsEndsAllRanks) {
  TestJob job;
  job.training = MakeTraining("mlp", 4, 4);
  job.samples = 64;
  job.ceiling_probe_steps = 4;
  job.before_batch = [](int32_t rank, int64_t, std::vector<std::stop_source>&) {
    return rank == 1 ? absl::DataLossError("unreadable") : absl::OkStatus();
  };
  for (const RankRecord& record : RunRanks(job, 2)) {
    EXPECT_TRUE(absl::IsDataLoss(record.status)) << record.status;
  }
}

}  // namespace
}  // namespace hetero::train
