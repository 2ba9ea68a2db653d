#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/unit/runtime/train/rank_runner.h"

namespace hetero::train {
namespace {

using ::testing::DoubleNear;
using ::testing::Gt;
using ::testing::SizeIs;

// The same job on one rank, with the same global batch.
TestJob ForRanks(TestJob job, int32_t ranks) {
  job.training.batch_size_per_worker /= ranks;
  return job;
}

void ExpectSameTraining(const std::vector<RankRecord>& many, const RankRecord& one,
                        double tolerance) {
  ASSERT_TRUE(one.status.ok()) << one.status;
  for (size_t rank = 0; rank < many.size(); ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    const RankRecord& record = many[rank];
    ASSERT_TRUE(record.status.ok()) << record.status;
    ASSERT_EQ(record.steps.size(), one.steps.size());
    for (size_t i = 0; i < one.steps.size(); ++i) {
      EXPECT_THAT(record.steps[i].loss, DoubleNear(one.steps[i].loss, tolerance)) << "step " << i;
      EXPECT_EQ(record.steps[i].samples, one.steps[i].samples);
      EXPECT_EQ(record.steps[i].step, static_cast<int64_t>(i) + 1);
    }
    EXPECT_EQ(record.epoch_crcs, many[0].epoch_crcs);
    EXPECT_EQ(record.epoch_crcs.size(), one.epoch_crcs.size());
    EXPECT_EQ(record.digest_high, one.digest_high);
    EXPECT_EQ(record.digest_low, one.digest_low);
    EXPECT_EQ(record.samples_consumed, one.samples_consumed);
    ASSERT_EQ(record.evaluations.size(), one.evaluations.size());
    for (size_t i = 0; i < one.evaluations.size(); ++i) {
      EXPECT_EQ(record.evaluations[i].samples, one.evaluations[i].samples);
      EXPECT_THAT(record.evaluations[i].loss, DoubleNear(one.evaluations[i].loss, tolerance));
    }
  }
}

// Tails of 13, 2 and 1 samples: uneven shares, and ranks without any.
class DataParallelTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(DataParallelTest, TwoAndThreeRanksTrainLikeOne) {
  TestJob job;
  job.training = MakeTraining("mlp", 48, 50);
  job.samples = 48 * 6 + GetParam();
  job.validation_samples = 37;
  const std::vector<RankRecord> one = RunRanks(job, 1);
  EXPECT_LT(one[0].steps.back().loss, 0.8 * one[0].steps.front().loss);
  ExpectSameTraining(RunRanks(ForRanks(job, 2), 2), one[0], 1e-4);
  ExpectSameTraining(RunRanks(ForRanks(job, 3), 3), one[0], 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Tails, DataParallelTest, ::testing::Values(13, 2, 1));

TEST(TrainerTest, AccumulationClippingAndAdamWTrainLikeOneBigBatch) {
  TestJob job;
  job.training = MakeTraining("mlp", 48, 20);
  job.training.optimizer.name = api::OptimizerKind::kAdamW;
  job.training.optimizer.learning_rate = 1e-3;
  job.training.gradient_clip_norm = 0.5;
  job.training.loss.label_smoothing = 0.1;
  job.samples = 48 * 3 + 7;
  const std::vector<RankRecord> one = RunRanks(job, 1);
  job.training.batch_size_per_worker = 12;
  job.training.gradient_accumulation_steps = 2;
  ExpectSameTraining(RunRanks(job, 2), one[0], 1e-4);
}

TEST(TrainerTest, EverySampleOfAnEpochIsTrainedOnOnce) {
  TestJob job;
  job.training = MakeTraining("mlp", 8, 100);
  job.training.epochs = 1;
  job.samples = 61;
  std::vector<int64_t> ids;
  for (const RankRecord& record : RunRanks(job, 3)) {
    ASSERT_TRUE(record.status.ok()) << record.status;
    ids.insert(ids.end(), record.sample_ids.begin(), record.sample_ids.end());
  }
  std::sort(ids.begin(), ids.end());
  std::vector<int64_t> want(61);
  std::iota(want.begin(), want.end(), 0);
  EXPECT_EQ(ids, want);
}

TEST(TrainerTest, EvaluationCountsEachSampleOnce) {
  TestJob job;
  job.training = MakeTraining("mlp", 8, 12);
  job.training.evaluation = api::Evaluation{.every_steps = 5};
  job.samples = 64;
  job.validation_samples = 25;  // the last batch leaves one rank without samples
  for (const RankRecord& record : RunRanks(job, 3)) {
    ASSERT_TRUE(record.status.ok()) << record.status;
    ASSERT_THAT(record.evaluations, SizeIs(3));
    for (const EvaluationRecord& evaluation : record.evaluations) {
      EXPECT_EQ(evaluation.samples, 25);
      const double correct = evaluation.accuracy * 25;
      EXPECT_THAT(correct, DoubleNear(std::round(correct), 1e-9));
    }
    EXPECT_EQ(record.evaluations[1].step, 10);
    EXPECT_EQ(record.evaluations[2].step, 12);
    EXPECT_THAT(record.steps, SizeIs(12));
  }
}

TEST(TrainerTest, BatchNormSurvivesATailOfOneSample) {
  TestJob job;
  job.image = {32, 32, 3};
  job.training = MakeTraining("resnet18", 2, 4);
  job.samples = 5;  // each epoch: one step of four, one of a single sample that rank 0 has
  job.validation_samples = 3;
  const std::vector<RankRecord> records = RunRanks(job, 2);
  for (const RankRecord& record : records) {
    ASSERT_TRUE(record.status.ok()) << record.status;
    ASSERT_THAT(record.steps, SizeIs(4));
    EXPECT_EQ(record.steps[1].samples, 1);
    for (const StepRecord& step : record.steps) EXPECT_TRUE(std::isfinite(step.loss));
    EXPECT_EQ(record.epoch_crcs, records[0].epoch_crcs);
  }
}

TEST(TrainerTest, SameSeedSameBitsAnotherSeedOthers) {
  TestJob job;
  job.training = MakeTraining("mlp", 16, 8);
  job.samples = 64;
  const std::vector<RankRecord> first = RunRanks(job, 2), second = RunRanks(job, 2);
  job.training.seed = 12;
  const std::vector<RankRecord> other = RunRanks(job, 2);
  EXPECT_EQ(first[0].epoch_crcs, second[0].epoch_crcs);
  EXPECT_NE(first[0].epoch_crcs, other[0].epoch_crcs);
}

TEST(TrainerTest, PhasesSumToTheTrainTime) {
  TestJob job;
  job.training = MakeTraining("mlp", 32, 20);
  job.samples = 256;
  job.validation_samples = 64;
  for (const RankRecord& record : RunRanks(job, 2)) {
    const Phases& p = record.phases;
    const double sum = p.wait + p.host_to_device + p.forward + p.backward + p.all_reduce +
                       p.optimizer + p.checkpoint + p.evaluation;
    EXPECT_THAT(record.train_seconds, Gt(0));
    EXPECT_THAT(sum, DoubleNear(record.train_seconds, 0.02 * record.train_seconds));
    for (double phase : {p.wait, p.host_to_device, p.forward, p.backward, p.all_reduce, p.optimizer,
                         p.evaluation}) {
      EXPECT_THAT(phase, Gt(0));
    }
  }
}

}  // namespace
}  // namespace hetero::train
