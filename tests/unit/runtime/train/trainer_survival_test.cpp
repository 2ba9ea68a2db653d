// Groups that break under ranks that live on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "runtime/train/process_group/exceptions.h"
#include "tests/unit/runtime/train/connections.h"
#include "tests/unit/runtime/train/rank_runner.h"

namespace hetero::train {
namespace {

using ::testing::SizeIs;

TestJob MakeJob() {
  TestJob job;
  job.training = MakeTraining("mlp", 8, 30);
  job.samples = 200;
  job.generations = 4;
  return job;
}

TEST(TrainerSurvivalTest, AGroupThatBreaksCostsNoStepAndChangesNothing) {
  const std::vector<RankRecord> whole = RunRanks(MakeJob(), 2);
  TestJob job = MakeJob();
  std::atomic<int> cuts = 0;
  job.before_batch = [&](int32_t rank, int64_t index, std::vector<std::stop_source>&) {
    if (rank == 1 && (index == 7 || index == 19) && cuts < 2) {
      ++cuts;
      CutEveryConnection();
    }
    return absl::OkStatus();
  };
  const std::vector<RankRecord> records = RunRanks(job, 2);
  EXPECT_EQ(cuts, 2);
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(records[rank].status.ok()) << records[rank].status;
    EXPECT_EQ(records[rank].sample_ids, whole[rank].sample_ids);
    EXPECT_EQ(records[rank].digest_low, whole[rank].digest_low);
    EXPECT_EQ(records[rank].samples_consumed, whole[rank].samples_consumed);
    EXPECT_EQ(records[rank].epoch_crcs.back(), whole[rank].epoch_crcs.back());
  }
}

TEST(TrainerSurvivalTest, StatisticsOfBatchNormAreThoseOfTheStepsThatCount) {
  TestJob job = MakeJob();
  job.training = MakeTraining("resnet18", 4, 4);
  job.image = {32, 32, 3};
  const std::vector<RankRecord> whole = RunRanks(job, 2);
  std::atomic<int> cuts = 0;
  job.before_batch = [&](int32_t rank, int64_t index, std::vector<std::stop_source>&) {
    if (rank == 1 && index == 2 && cuts++ == 0) CutEveryConnection();
    return absl::OkStatus();
  };
  const std::vector<RankRecord> records = RunRanks(job, 2);
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(records[rank].status.ok()) << records[rank].status;
    EXPECT_EQ(records[rank].epoch_crcs.back(), whole[rank].epoch_crcs.back());
  }
}

TEST(TrainerSurvivalTest, AnEvaluationInWhichTheGroupBreaksIsMadeInFull) {
  TestJob job = MakeJob();
  job.training.max_steps = 10;
  job.validation_samples = 64;
  std::atomic<int> cuts = 0;
  job.before_batch = [&](int32_t rank, int64_t index, std::vector<std::stop_source>&) {
    if (rank == 1 && index == 11 && cuts++ == 0) CutEveryConnection();
    return absl::OkStatus();
  };
  for (const RankRecord& record : RunRanks(job, 2)) {
    EXPECT_TRUE(record.status.ok()) << record.status;
    ASSERT_THAT(record.evaluations, SizeIs(1));
    EXPECT_EQ(record.evaluations[0].samples, 64);
  }
  EXPECT_GE(cuts, 1);
}

// Rank 1 has done the evaluation and holds its next training batch when the group breaks; rank 0,
// whose standing counts, has not. Rank 1 then began one batch too far, and ended with a training
// batch.
TEST(TrainerSurvivalTest, AnEvaluationAgainScoredATrainingBatch) {
  TestJob job = MakeJob();
  job.training.max_steps = 10;
  job.training.evaluation = api::Evaluation{.every_steps = 5};
  job.validation_samples = 64;
  const std::vector<RankRecord> whole = RunRanks(job, 2);
  std::atomic<int> breaks = 0;
  job.before_evaluation_record = [&](int32_t rank) {
    if (rank == 0 && breaks++ == 0) throw CollectiveError("connection closed by peer");
  };
  const std::vector<RankRecord> records = RunRanks(job, 2);
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(records[rank].status.ok()) << records[rank].status;
    EXPECT_EQ(records[rank].sample_ids, whole[rank].sample_ids);
    EXPECT_EQ(records[rank].epoch_crcs.back(), whole[rank].epoch_crcs.back());
    ASSERT_THAT(records[rank].evaluations, SizeIs(rank == 0 ? 2 : 3));
    for (const EvaluationRecord& evaluation : records[rank].evaluations) {
      EXPECT_EQ(evaluation.samples, 64);
      const auto& expected = whole[rank].evaluations[evaluation.step == 5 ? 0 : 1];
      EXPECT_EQ(evaluation.loss, expected.loss);
    }
  }
}

}  // namespace
}  // namespace hetero::train
