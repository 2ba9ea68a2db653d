// As same_bits_test.cpp, with a model of 86 million parameters in many buckets.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/train/rank_runner.h"

namespace hetero::train {
namespace {

using hetero::testing::TemporaryFolder;

TestJob MakeJob(int64_t steps) {
  TestJob job;
  job.training = MakeTraining("vit_b_16", 2, steps);
  job.training.optimizer.momentum = 0.9;
  job.image = {32, 32, 3};
  job.samples = 200;
  job.generations = 3;
  return job;
}

std::vector<RankRecord> Train(const TestJob& job, int32_t ranks) {
  std::vector<RankRecord> records = RunRanks(job, ranks);
  for (const RankRecord& record : records) {
    EXPECT_TRUE(record.status.ok()) << record.status;
    EXPECT_EQ(record.epoch_crcs.back(), records[0].epoch_crcs.back());
  }
  return records;
}

uint32_t Bits(const TestJob& job, int32_t ranks) { return Train(job, ranks)[0].epoch_crcs.back(); }

TestJob WithDeath(int64_t steps, int32_t victim, std::atomic<int>& deaths) {
  TestJob job = MakeJob(steps);
  job.dies = [victim, &deaths](int32_t rank, int64_t index) {
    return rank == victim && index == 2 && deaths++ == 0;
  };
  return job;
}

// And, where there are three, those of a job that was resumed.
TEST(VitBitsTest, WeightsAfterALossOrAResumeAreThoseOfAnUndisturbedJob) {
  const uint32_t undisturbed = Bits(MakeJob(3), 3);
  for (int32_t victim = 0; victim < 3; ++victim) {
    SCOPED_TRACE("rank " + std::to_string(victim));
    std::atomic<int> deaths = 0;
    const std::vector<RankRecord> records = Train(WithDeath(3, victim, deaths), 3);
    EXPECT_EQ(records[static_cast<size_t>(victim)].starts, 2);
    EXPECT_EQ(records[0].epoch_crcs.back(), undisturbed);
  }
  TemporaryFolder folder;
  TestJob job = MakeJob(2);
  job.training.checkpoint = api::Checkpoint{.uri = "file://" + folder.path(), .every_steps = 2};
  Train(job, 3);
  job.training.max_steps = 3;
  const std::vector<RankRecord> resumed = Train(job, 3);
  EXPECT_EQ(resumed[0].resumed_from, 2);
  EXPECT_EQ(resumed[0].epoch_crcs.back(), undisturbed);
}

TEST(VitBitsTest, WeightsAfterALostRankAreThoseOfAnUndisturbedJobOfTwoOrFour) {
  for (const int32_t ranks : {2, 4}) {
    std::atomic<int> deaths = 0;
    const uint32_t bits = Bits(WithDeath(3, ranks - 2, deaths), ranks);
    EXPECT_EQ(bits, Bits(MakeJob(3), ranks)) << ranks << " ranks";
    EXPECT_EQ(deaths, 2);
  }
}

}  // namespace
}  // namespace hetero::train
