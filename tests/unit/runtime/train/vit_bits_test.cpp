// As same_bits_test.cpp, with a model of 86 million parameters in many buckets.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/unit/runtime/train/rank_runner.h"

namespace hetero::train {
namespace {

TestJob MakeJob(int64_t steps) {
  TestJob job;
  job.training = MakeTraining("vit_b_16", 2, steps);
  job.training.optimizer.momentum = 0;
  job.image = {32, 32, 3};
  job.samples = 200;
  job.generations = 3;
  return job;
}

uint32_t Bits(const TestJob& job, int32_t ranks) {
  const std::vector<RankRecord> records = RunRanks(job, ranks);
  for (const RankRecord& record : records) EXPECT_TRUE(record.status.ok()) << record.status;
  return records[0].epoch_crcs.back();
}

TEST(VitBitsTest, WeightsAfterALostRankAreThoseOfAnUndisturbedJob) {
  for (const int32_t ranks : {2, 3, 4}) {
    TestJob job = MakeJob(3);
    std::atomic<int> deaths = 0;
    job.dies = [&](int32_t rank, int64_t index) {
      return rank == ranks - 2 && index == 2 && deaths++ == 0;
    };
    EXPECT_EQ(Bits(job, ranks), Bits(MakeJob(3), ranks)) << ranks << " ranks";
    EXPECT_EQ(deaths, 2);
  }
}

}  // namespace
}  // namespace hetero::train
