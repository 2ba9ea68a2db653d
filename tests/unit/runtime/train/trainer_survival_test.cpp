// Groups that break under ranks that live on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

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

// Two ranks: the sum of two gradients does not depend on how a new group arranges its buckets.
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

}  // namespace
}  // namespace hetero::train
