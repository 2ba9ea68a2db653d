// The weights at the end do not depend on what happened on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/train/rank_runner.h"

namespace hetero::train {
namespace {

using hetero::testing::TemporaryFolder;

TestJob MakeJob(int64_t steps) {
  TestJob job;
  job.training = MakeTraining("resnet18", 4, steps);
  job.image = {32, 32, 3};
  job.samples = 200;
  job.generations = 4;
  // A send of Gloo whose group was cut may wait for ever; the next generation ends it.
  job.newer_generations_end_older = true;
  return job;
}

std::vector<RankRecord> Train(const TestJob& job, int32_t ranks) {
  std::vector<RankRecord> records = RunRanks(job, ranks);
  for (const RankRecord& record : records) EXPECT_TRUE(record.status.ok()) << record.status;
  return records;
}

// Of parameters and buffers, at the end.
uint32_t Bits(const std::vector<RankRecord>& records) {
  for (const RankRecord& record : records) {
    EXPECT_EQ(record.epoch_crcs.empty(), false);
    EXPECT_EQ(record.epoch_crcs.back(), records[0].epoch_crcs.back());
  }
  return records[0].epoch_crcs.back();
}

// The second bucket of gradients was once summed in another order before than after LibTorch had
// rearranged the buckets, in every generation anew.
TEST(SameBitsTest, WeightsAfterALostRankDifferedWithThreeRanks) {
  for (const int32_t ranks : {2, 3, 4}) {
    const uint32_t undisturbed = Bits(Train(MakeJob(4), ranks));
    for (int32_t victim = 0; victim < ranks; ++victim) {
      SCOPED_TRACE(std::to_string(victim) + " of " + std::to_string(ranks));
      TestJob job = MakeJob(4);
      std::atomic<int> deaths = 0;
      job.dies = [&](int32_t rank, int64_t index) {
        return rank == victim && index == 2 && deaths++ == 0;
      };
      const std::vector<RankRecord> records = Train(job, ranks);
      EXPECT_EQ(records[static_cast<size_t>(victim)].starts, 2);
      EXPECT_EQ(Bits(records), undisturbed);
    }
  }
}

// A rank is lost in the first step of a generation, and again.
TEST(SameBitsTest, LossesOneAfterTheOtherChangeNothing) {
  const uint32_t undisturbed = Bits(Train(MakeJob(5), 3));
  TestJob job = MakeJob(5);
  std::atomic<int> first = 0, second = 0;
  job.dies = [&](int32_t rank, int64_t index) {
    return (rank == 1 && index == 1 && first++ == 0) || (rank == 0 && index == 3 && second++ == 0);
  };
  EXPECT_EQ(Bits(Train(job, 3)), undisturbed);
}

// Rank 0's statistics of batch norm are the job's. When it died, those that rank 1's own samples
// had made took their place.
TEST(SameBitsTest, StatisticsOfBatchNormDiedWithRankZero) {
  const uint32_t undisturbed = Bits(Train(MakeJob(3), 2));
  TestJob job = MakeJob(3);
  std::atomic<int> deaths = 0;
  job.dies = [&](int32_t rank, int64_t index) { return rank == 0 && index == 2 && deaths++ == 0; };
  EXPECT_EQ(Bits(Train(job, 2)), undisturbed);
}

void ExpectTheSameAfterAResume(int32_t ranks) {
  SCOPED_TRACE(std::to_string(ranks) + " ranks");
  const uint32_t undisturbed = Bits(Train(MakeJob(4), ranks));
  TemporaryFolder folder;
  TestJob job = MakeJob(2);
  job.training.checkpoint = api::Checkpoint{.uri = "file://" + folder.path(), .every_steps = 2};
  Train(job, ranks);
  job.training.max_steps = 4;
  const std::vector<RankRecord> resumed = Train(job, ranks);
  EXPECT_EQ(resumed[0].resumed_from, 2);
  EXPECT_EQ(Bits(resumed), undisturbed);
}

TEST(SameBitsTest, WeightsAfterAResumeDifferedWithThreeRanks) { ExpectTheSameAfterAResume(3); }

TEST(SameBitsTest, WeightsAfterAResumeAreTheSameWithTwoOrFourRanks) {
  ExpectTheSameAfterAResume(2);
  ExpectTheSameAfterAResume(4);
}

}  // namespace
}  // namespace hetero::train
