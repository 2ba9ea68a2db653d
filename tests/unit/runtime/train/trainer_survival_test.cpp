// Groups that break under ranks that live on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "base/fake_clock.h"
#include "runtime/train/process_group/exceptions.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/train/connections.h"
#include "tests/unit/runtime/train/rank_runner.h"

namespace hetero::train {
namespace {

using hetero::testing::TemporaryFolder;
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

// Rank `lost` is gone once the last step is evaluated, and the other one, which was asked to leave
// a moment ago, is alone in the last exchange. Time stands still, so that it never insists.
std::vector<RankRecord> LoseOneInTheLastExchange(int32_t lost, const std::string& output) {
  base::FakeClock clock;
  TestJob job = MakeJob();
  job.training.max_steps = 4;
  job.validation_samples = 16;
  job.generations = 1;
  job.clock = &clock;
  job.output_folder = output;
  job.leaves = [lost](int32_t rank, int64_t index) { return rank != lost && index == 4; };
  job.before_evaluation_record = [lost](int32_t rank) {
    if (rank == lost) throw CollectiveError("connection closed by peer");
  };
  return RunRanks(job, 2);
}

// Without the weights that rank 0 had not written.
TEST(TrainerSurvivalTest, ARankThatLeavesReportedTheWholeJobDone) {
  TemporaryFolder folder;
  const std::vector<RankRecord> records = LoseOneInTheLastExchange(0, folder.path());
  EXPECT_TRUE(absl::IsUnavailable(records[0].status)) << records[0].status;
  EXPECT_FALSE(records[1].status.ok());
  EXPECT_EQ(records[1].starts, 2);  // it has left, and its replacement finds no generation
  ASSERT_THAT(records[1].steps, SizeIs(4));
  EXPECT_FALSE(std::filesystem::exists(folder / "model.safetensors"));
}

TEST(TrainerSurvivalTest, RankZeroLeavesWithTheResultThatItHasWritten) {
  TemporaryFolder folder;
  const std::vector<RankRecord> records = LoseOneInTheLastExchange(1, folder.path());
  EXPECT_TRUE(records[0].status.ok()) << records[0].status;
  EXPECT_EQ(records[0].starts, 1);
  EXPECT_TRUE(std::filesystem::exists(folder / "model.safetensors"));
}

}  // namespace
}  // namespace hetero::train
