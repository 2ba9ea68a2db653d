// What a job does not leave to the end of an epoch that takes hours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <utility>

#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/train/rank_runner.h"

namespace hetero::train {
namespace {

using hetero::testing::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The machine's, ahead by as much as the test says.
class ShiftedClock : public base::Clock {
 public:
  base::Instant Now() const override { return Real().Now() + ahead_.load(); }
  base::WallTime WallNow() const override { return Real().WallNow(); }
  bool SleepFor(base::Duration duration, std::stop_token stop) override {
    return Real().SleepFor(duration, std::move(stop));
  }
  void Shift(base::Duration by) { ahead_ = ahead_.load() + by; }

 private:
  std::atomic<base::Duration> ahead_ = base::Duration::zero();
};

TestJob LongEpoch(int64_t max_steps) {
  TestJob job;
  job.training = MakeTraining("mlp", 16, max_steps);
  job.samples = 100'000;
  return job;
}

TEST(LongEpochTest, ParametersThatDifferAreSeenWithinMinutes) {
  ShiftedClock first;
  TestJob job = LongEpoch(60);
  job.clocks = {&first, &base::Clock::Real()};  // the others' do not count
  job.change_training = [](int32_t rank, api::Training& training) {
    if (rank == 1) training.optimizer.learning_rate *= 2;
  };
  job.after_step = [&](int32_t rank, const StepRecord& step, auto&) {
    if (rank == 0 && step.step == 10) first.Shift(std::chrono::minutes(6));
  };
  for (const RankRecord& record : RunRanks(job, 2)) {
    EXPECT_EQ(record.status.code(), absl::StatusCode::kDataLoss) << record.status;
    EXPECT_THAT(record.status.message(),
                HasSubstr("ranks diverged after step 11: the parameters of rank 1 differ from "
                          "those of rank 0. Check that all GPU workers run the same image"));
    EXPECT_THAT(record.steps, SizeIs(11));
  }
}

// The next attempt would go on from what one rank computed wrongly, and all would agree.
TEST(LongEpochTest, WithoutARuleNoCheckpointIsWrittenOfParametersThatDiffer) {
  TemporaryFolder folder;
  ShiftedClock first;
  TestJob job = LongEpoch(60);
  job.training.checkpoint = api::Checkpoint{.uri = "file://" + folder.path()};
  job.clocks = {&first, &base::Clock::Real()};
  job.change_training = [](int32_t rank, api::Training& training) {
    if (rank == 1) training.optimizer.learning_rate *= 2;
  };
  job.after_step = [&](int32_t rank, const StepRecord& step, auto&) {
    if (rank == 0 && step.step == 10) first.Shift(std::chrono::minutes(31));
  };
  for (const RankRecord& record : RunRanks(job, 2)) {
    EXPECT_EQ(record.status.code(), absl::StatusCode::kDataLoss) << record.status;
    EXPECT_THAT(record.checkpoints, IsEmpty());
  }
}

// Ranks that come late: the first look at the parameters is before the first step.
TEST(LongEpochTest, NothingIsWrittenOfAModelThatNobodyTrained) {
  TemporaryFolder folder;
  ShiftedClock first;
  TestJob job = LongEpoch(10);
  job.training.checkpoint = api::Checkpoint{.uri = "file://" + folder.path(), .every_steps = 10};
  job.clocks = {&first, &base::Clock::Real()};
  job.before_batch = [&](int32_t rank, int64_t index, auto&) {
    if (rank == 0 && index == 0) first.Shift(std::chrono::minutes(31));
    return absl::OkStatus();
  };
  const std::vector<RankRecord> ranks = RunRanks(job, 2);
  ASSERT_TRUE(ranks[0].status.ok()) << ranks[0].status;
  EXPECT_FALSE(std::filesystem::exists(folder / "step-000000000000"));
  ASSERT_THAT(ranks[0].checkpoints, SizeIs(1));
  EXPECT_EQ(ranks[0].checkpoints[0].second, 10);
}

TEST(LongEpochTest, LookingAtParametersChangesNothing) {
  ShiftedClock clock;
  TestJob job = LongEpoch(20);
  job.clocks = {&clock, &clock};
  const std::vector<RankRecord> undisturbed = RunRanks(job, 2);
  job.after_step = [&](int32_t rank, const StepRecord&, auto&) {
    if (rank == 0) clock.Shift(std::chrono::minutes(6));
  };
  const std::vector<RankRecord> looked = RunRanks(job, 2);
  for (size_t rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(looked[rank].status.ok()) << looked[rank].status;
    EXPECT_EQ(looked[rank].epoch_crcs, undisturbed[rank].epoch_crcs);
    EXPECT_EQ(looked[rank].digest_high, undisturbed[rank].digest_high);
  }
}

// Once the default was at the end of each epoch alone: ten hours of training could be lost.
TEST(LongEpochTest, WithoutARuleACheckpointIsWrittenEveryHalfHourAndGoesOnToTheBit) {
  const std::vector<RankRecord> straight = RunRanks(LongEpoch(30), 2);
  TemporaryFolder folder;
  ShiftedClock clock;
  TestJob job = LongEpoch(30);
  job.training.checkpoint = api::Checkpoint{.uri = "file://" + folder.path()};
  job.clocks = {&clock, &clock};
  job.after_step = [&](int32_t rank, const StepRecord& step, auto&) {
    if (rank == 0 && step.step == 12) clock.Shift(std::chrono::minutes(31));
  };
  job.before_batch = [](int32_t, int64_t index, auto&) {
    return index == 20 ? absl::DataLossError("enough") : absl::OkStatus();
  };
  const std::vector<RankRecord> first = RunRanks(job, 2);
  EXPECT_EQ(first[0].status.code(), absl::StatusCode::kDataLoss) << first[0].status;
  // A step is told with the exchange of the next one.
  EXPECT_TRUE(std::filesystem::exists(folder / "step-000000000013"));
  job.after_step = nullptr;
  job.before_batch = nullptr;
  const std::vector<RankRecord> second = RunRanks(job, 2);
  for (size_t rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(second[rank].status.ok()) << second[rank].status;
    EXPECT_EQ(second[rank].resumed_from, 13);
    EXPECT_THAT(second[rank].steps, SizeIs(17));
    for (size_t i = 0; i < 17; ++i) {
      EXPECT_EQ(second[rank].steps[i].loss, straight[rank].steps[13 + i].loss) << i;
    }
    EXPECT_EQ(second[rank].epoch_crcs, straight[rank].epoch_crcs);
    EXPECT_EQ(second[rank].digest_high, straight[rank].digest_high);
    EXPECT_EQ(second[rank].digest_low, straight[rank].digest_low);
    EXPECT_EQ(second[rank].samples_consumed, straight[rank].samples_consumed);
  }
}

TEST(LongEpochTest, WhoSaysWhenIsNotWrittenForByTheClock) {
  TemporaryFolder folder;
  ShiftedClock clock;
  TestJob job = LongEpoch(20);
  job.training.checkpoint = api::Checkpoint{.uri = "file://" + folder.path(), .every_steps = 1000};
  job.clocks = {&clock};
  job.after_step = [&](int32_t, const StepRecord&, auto&) { clock.Shift(std::chrono::hours(1)); };
  const RankRecord record = RunRanks(job, 1).front();
  ASSERT_THAT(record.checkpoints, SizeIs(1));
  EXPECT_EQ(record.checkpoints[0].second, 20);
}

}  // namespace
}  // namespace hetero::train
