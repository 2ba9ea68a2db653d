// Ranks that are asked to leave while the others go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/train/rank_runner.h"

namespace hetero::train {
namespace {

using hetero::testing::TemporaryFolder;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Two seconds pass with each batch of rank 0, and nobody waits for them.
class HurriedClock : public base::Clock {
 public:
  base::Instant Now() const override {
    return base::Clock::Real().Now() + std::chrono::seconds(2) * passed_.load();
  }
  base::WallTime WallNow() const override { return base::Clock::Real().WallNow(); }
  bool SleepFor(base::Duration duration, std::stop_token stop) override {
    return base::Clock::Real().SleepFor(std::min<base::Duration>(duration, kShort), stop);
  }
  void Pass() { ++passed_; }

 private:
  static constexpr base::Duration kShort = std::chrono::milliseconds(20);
  std::atomic<int64_t> passed_ = 0;
};

class LeaveTest : public ::testing::Test {
 protected:
  static constexpr int64_t kSteps = 14;

  TestJob MakeJob() {
    TestJob job;
    job.training = MakeTraining("mlp", 8, kSteps);
    job.samples = 200;
    job.generations = 4;
    job.clock = &clock_;
    job.before_batch = [this](int32_t rank, int64_t, std::vector<std::stop_source>&) {
      if (rank == 0) clock_.Pass();
      return absl::OkStatus();
    };
    return job;
  }
  // The ranks of `leavers` are asked before their batch `index`, once.
  void Ask(TestJob& job, const std::set<int32_t>& leavers, int64_t index) {
    asked_ = 0;
    job.leaves = [this, leavers, index](int32_t rank, int64_t at) {
      if (at != index || !leavers.contains(rank)) return false;
      return (asked_.fetch_or(1 << rank) & (1 << rank)) == 0;
    };
  }

  // As if nobody had left; whoever stayed has done each step once.
  static void ExpectUndisturbed(const std::vector<RankRecord>& records,
                                const std::vector<RankRecord>& whole,
                                const std::set<int32_t>& leavers) {
    for (size_t rank = 0; rank < records.size(); ++rank) {
      SCOPED_TRACE("rank " + std::to_string(rank));
      EXPECT_TRUE(records[rank].status.ok()) << records[rank].status;
      EXPECT_EQ(records[rank].epoch_crcs.back(), whole[rank].epoch_crcs.back());
      EXPECT_EQ(records[rank].digest_low, whole[rank].digest_low);
      EXPECT_EQ(records[rank].sample_ids, whole[rank].sample_ids);
      const bool left = leavers.contains(static_cast<int32_t>(rank));
      EXPECT_EQ(records[rank].starts, left ? 2 : 1);
      if (left) continue;
      EXPECT_THAT(records[rank].steps, SizeIs(kSteps));
    }
  }

  // Never destroyed: threads that gave up forming a group go on using it.
  static HurriedClock& TheClock() {
    static HurriedClock& clock = *new HurriedClock();
    return clock;
  }

  HurriedClock& clock_ = TheClock();
  std::atomic<int> asked_ = 0;
};

TEST_F(LeaveTest, WhoeverLeavesTheOthersKeepProcessAndState) {
  const std::vector<RankRecord> whole = RunRanks(MakeJob(), 3);
  for (const std::set<int32_t>& leavers :
       {std::set<int32_t>{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}}) {
    SCOPED_TRACE(absl::StrCat("leaves ", *leavers.begin(), " of ", leavers.size()));
    TestJob job = MakeJob();
    Ask(job, leavers, 5);
    ExpectUndisturbed(RunRanks(job, 3), whole, leavers);
  }
}

TEST_F(LeaveTest, WhenAllAreAskedTheJobStopsAfterOneStep) {
  TemporaryFolder folder;
  TestJob job = MakeJob();
  job.training.checkpoint = api::Checkpoint{.uri = "file://" + folder.path(), .every_steps = 1000};
  Ask(job, {0, 1, 2}, 5);
  const std::vector<RankRecord> records = RunRanks(job, 3);
  for (const RankRecord& record : records) {
    EXPECT_TRUE(absl::IsCancelled(record.status)) << record.status;
    EXPECT_EQ(record.starts, 1);
    EXPECT_EQ(record.steps.size(), records[0].steps.size());
  }
  ASSERT_THAT(records[0].checkpoints, SizeIs(1));
  EXPECT_EQ(records[0].checkpoints[0].second, static_cast<int64_t>(records[0].steps.size()));
}

TEST_F(LeaveTest, AJobOfOneRankStops) {
  TestJob job = MakeJob();
  Ask(job, {0}, 5);
  const RankRecord record = RunRanks(job, 1).front();
  EXPECT_TRUE(absl::IsCancelled(record.status)) << record.status;
  EXPECT_EQ(record.starts, 1);
}

// The lowest that stays writes it, and the new rank 0 can take the folder over.
TEST_F(LeaveTest, ACheckpointIsWrittenWhoeverLeaves) {
  const std::vector<RankRecord> whole = RunRanks(MakeJob(), 3);
  for (const auto& [leavers, writer] :
       {std::pair<std::set<int32_t>, size_t>{{1}, 0}, {{0}, 1}, {{0, 1}, 2}}) {
    SCOPED_TRACE("writer " + std::to_string(writer));
    TemporaryFolder folder;
    TestJob job = MakeJob();
    job.training.checkpoint =
        api::Checkpoint{.uri = "file://" + folder.path(), .every_steps = 1000};
    Ask(job, leavers, 5);
    const std::vector<RankRecord> records = RunRanks(job, 3);
    ExpectUndisturbed(records, whole, leavers);
    ASSERT_FALSE(records[writer].checkpoints.empty());
    const int64_t step = records[writer].checkpoints[0].second;
    EXPECT_GE(step, 5);
    EXPECT_LT(step, kSteps);
    EXPECT_EQ(records[0].checkpoints.back().second, kSteps);
  }
}

TEST_F(LeaveTest, WhoeverWantsACheckpointGetsOneOfTheStepUnderWay) {
  TemporaryFolder folder;
  TestJob job = MakeJob();
  job.training.checkpoint = api::Checkpoint{.uri = "file://" + folder.path(), .every_steps = 1000};
  job.is_to_save = [](int32_t rank, int64_t index) { return rank == 0 && index == 5; };
  const std::vector<RankRecord> records = RunRanks(job, 2);
  ASSERT_THAT(records[0].checkpoints, SizeIs(2)) << "that one, and that of the end";
  EXPECT_EQ(records[0].checkpoints[0].second, 6);
  EXPECT_EQ(records[0].checkpoints[1].second, kSteps);
  EXPECT_THAT(records[1].checkpoints, IsEmpty());
}

TEST_F(LeaveTest, AnEvaluationIsMadeInFullAfterwards) {
  const auto make = [this] {
    TestJob job = MakeJob();
    job.training.evaluation = api::Evaluation{.every_steps = 7};
    job.validation_samples = 120;
    return job;
  };
  const std::vector<RankRecord> whole = RunRanks(make(), 3);
  for (const int32_t leaver : {0, 1}) {
    TestJob job = make();
    Ask(job, {leaver}, 9);  // the third batch of the first evaluation
    const std::vector<RankRecord> records = RunRanks(job, 3);
    for (size_t rank = 0; rank < records.size(); ++rank) {
      SCOPED_TRACE(absl::StrCat("rank ", rank, " where ", leaver, " leaves"));
      EXPECT_TRUE(records[rank].status.ok()) << records[rank].status;
      EXPECT_EQ(records[rank].epoch_crcs.back(), whole[rank].epoch_crcs.back());
      EXPECT_EQ(records[rank].digest_low, whole[rank].digest_low);
      ASSERT_THAT(records[rank].evaluations, SizeIs(2));
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(records[rank].evaluations[i].step, whole[rank].evaluations[i].step);
        EXPECT_EQ(records[rank].evaluations[i].samples, 120);
        EXPECT_EQ(records[rank].evaluations[i].accuracy, whole[rank].evaluations[i].accuracy);
        EXPECT_EQ(records[rank].evaluations[i].loss, whole[rank].evaluations[i].loss);
      }
    }
    EXPECT_EQ(records[static_cast<size_t>(leaver)].starts, 2);
  }
}

TEST_F(LeaveTest, WhileAGroupFormsWhoeverLeavesIsNotWaitedFor) {
  const std::vector<RankRecord> whole = RunRanks(MakeJob(), 3);
  for (const int32_t leaver : {0, 2}) {
    TestJob job = MakeJob();
    job.newer_generations_end_older = true;
    job.leave_at_once = {leaver};
    ExpectUndisturbed(RunRanks(job, 3), whole, {leaver});
  }
}

}  // namespace
}  // namespace hetero::train
