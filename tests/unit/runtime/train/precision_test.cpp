// Numbers that are not finite, and numbers of sixteen bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/runtime/train/rank_runner.h"

namespace hetero::train {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The first update throws the parameters far out; every later gradient overflows.
TestJob OverflowingJob(api::NonFiniteAction action) {
  TestJob job;
  job.training = MakeTraining("mlp", 8, 6);
  job.training.optimizer.learning_rate = 1e30;
  job.training.stop_on_non_finite = action;
  job.samples = 96;
  return job;
}

TEST(NonFinite, SkipLeavesTheStepOutOnAllRanks) {
  const std::vector<RankRecord> records = RunRanks(OverflowingJob(api::NonFiniteAction::kSkip), 2);
  for (const RankRecord& record : records) {
    ASSERT_TRUE(record.status.ok()) << record.status;
    EXPECT_EQ(record.steps.size(), 6u);
    EXPECT_THAT(record.skipped_steps, Not(IsEmpty()));
    EXPECT_EQ(record.skipped_steps, records[0].skipped_steps);
    EXPECT_EQ(record.epoch_crcs, records[0].epoch_crcs);
    EXPECT_EQ(record.samples_consumed, 96);  // a skipped step has used its samples up
  }
}

TEST(NonFinite, FailNamesTheStepAndTheRemedy) {
  for (const RankRecord& record : RunRanks(OverflowingJob(api::NonFiniteAction::kFail), 2)) {
    EXPECT_EQ(record.status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(record.status.message()), HasSubstr("of training step "));
    EXPECT_THAT(std::string(record.status.message()), HasSubstr("learningRate"));
    EXPECT_THAT(record.skipped_steps, IsEmpty());
  }
}

TEST(Precision, Bfloat16FollowsFloat32FromAfar) {
  TestJob job;
  job.training = MakeTraining("mlp", 24, 30);
  job.samples = 240;
  const RankRecord exact = RunRanks(job, 2)[0];
  job.training.precision = api::Precision::kBf16;
  const RankRecord coarse = RunRanks(job, 2)[0];
  ASSERT_TRUE(coarse.status.ok()) << coarse.status;
  ASSERT_EQ(coarse.steps.size(), exact.steps.size());
  double difference = 0;
  for (size_t i = 0; i < exact.steps.size(); ++i) {
    difference = std::max(difference, std::abs(coarse.steps[i].loss - exact.steps[i].loss));
  }
  EXPECT_GT(difference, 1e-5);  // it did compute in other numbers
  EXPECT_LT(difference, 0.1);
  EXPECT_LT(coarse.steps.back().loss, 0.8 * coarse.steps.front().loss);
}

}  // namespace
}  // namespace hetero::train
