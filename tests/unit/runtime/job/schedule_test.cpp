#include "runtime/job/schedule.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hetero::job {
namespace {

// 10 samples in batches of 2 x 2: steps of 4, 4 and 2 samples; validation: batches of 4 and 1.
Schedule::Options Small() {
  Schedule::Options options;
  options.training = {.samples = 10, .batch_size_per_worker = 2, .ranks = 2, .epochs = 2};
  options.validation_samples = 5;
  return options;
}

// "0 1 a0 a1 2": training steps by number, evaluations by letter and batch.
std::string Sequence(const Schedule& schedule) {
  std::string text;
  for (int64_t i = 0; i < schedule.size(); ++i) {
    const PlannedBatch batch = schedule.At(i);
    if (!text.empty()) text += ' ';
    if (batch.split == Split::kValidation) text += static_cast<char>('a' + batch.evaluation);
    text += std::to_string(batch.step);
  }
  return text;
}

TEST(ScheduleTest, WithoutValidationThereIsOnlyTraining) {
  Schedule::Options options = Small();
  options.validation_samples = 0;
  options.evaluation = api::Evaluation{.every_steps = 1};
  const Schedule schedule(options, 0);
  EXPECT_EQ(Sequence(schedule), "0 1 2 3 4 5");
  EXPECT_EQ(schedule.evaluations(), 0);
  EXPECT_EQ(schedule.evaluation_batches(), 0);
  EXPECT_FALSE(schedule.EvaluatesAfter(5));
}

TEST(ScheduleTest, EvaluatesAfterTheLastStepByDefault) {
  EXPECT_EQ(Sequence(Schedule(Small(), 0)), "0 1 2 3 4 5 a0 a1");
}

TEST(ScheduleTest, EvaluatesByEpochsOnceAtTheEnd) {
  Schedule::Options options = Small();
  options.evaluation = api::Evaluation{.every_epochs = 1};
  const Schedule schedule(options, 0);
  EXPECT_EQ(Sequence(schedule), "0 1 2 a0 a1 3 4 5 b0 b1");
  EXPECT_EQ(schedule.evaluations(), 2);
}

TEST(ScheduleTest, EvaluatesByStepsAndAtTheEnd) {
  Schedule::Options options = Small();
  options.evaluation = api::Evaluation{.every_steps = 4};
  EXPECT_EQ(Sequence(Schedule(options, 0)), "0 1 2 3 a0 a1 4 5 b0 b1");
  options.evaluation = api::Evaluation{.every_steps = 2};
  EXPECT_EQ(Sequence(Schedule(options, 0)), "0 1 a0 a1 2 3 b0 b1 4 5 c0 c1");
}

TEST(ScheduleTest, MaxStepsInsideAnEpochStillEndsWithAnEvaluation) {
  Schedule::Options options = Small();
  options.training.max_steps = 4;
  options.evaluation = api::Evaluation{.every_epochs = 1};
  EXPECT_EQ(Sequence(Schedule(options, 0)), "0 1 2 a0 a1 3 b0 b1");
}

TEST(ScheduleTest, EmptyTrainingIsAnEmptySequence) {
  Schedule::Options options = Small();
  options.training.last_batch = api::LastBatch::kDrop;
  options.training.samples = 3;
  EXPECT_EQ(Schedule(options, 0).size(), 0);
}

TEST(ScheduleTest, BatchesCarryTheRanksShare) {
  Schedule::Options options = Small();
  options.evaluation = api::Evaluation{.every_epochs = 1};
  const Schedule rank0(options, 0), rank1(options, 1);
  EXPECT_EQ(rank0.At(2).slots, (SlotRange{8, 1}));
  EXPECT_EQ(rank1.At(2).slots, (SlotRange{9, 1}));
  EXPECT_EQ(rank1.At(5).epoch, 1);
  EXPECT_EQ(rank1.At(5).slots, (SlotRange{2, 2}));
  EXPECT_EQ(rank0.At(4).slots, (SlotRange{4, 1}));
  EXPECT_EQ(rank1.At(4).slots.count, 0);
  EXPECT_EQ(rank1.At(4).epoch, 0);
}

TEST(ScheduleTest, ValidationBatchesIgnoreAccumulation) {
  Schedule::Options options = Small();
  options.training.accumulation = 8;
  EXPECT_EQ(Schedule(options, 0).evaluation_batches(), 2);
}

TEST(ScheduleTest, HugePeriodsNeverComeDue) {
  Schedule::Options options = Small();
  options.evaluation = api::Evaluation{.every_epochs = INT64_MAX, .every_steps = INT64_MAX};
  EXPECT_EQ(Sequence(Schedule(options, 0)), "0 1 2 3 4 5 a0 a1");
}

// Naive twin: the loop a trainer would write.
TEST(ScheduleTest, EqualsTheLoopForManyPeriods) {
  for (int64_t every_epochs = 0; every_epochs <= 4; ++every_epochs) {
    for (int64_t every_steps = 0; every_steps <= 9; ++every_steps) {
      for (int64_t max_steps = 1; max_steps <= 25; ++max_steps) {
        Schedule::Options options = Small();
        options.training.epochs = 7;
        options.training.max_steps = max_steps;
        options.evaluation.emplace();
        if (every_epochs > 0) options.evaluation->every_epochs = every_epochs;
        if (every_steps > 0) options.evaluation->every_steps = every_steps;
        const Schedule schedule(options, 0);

        std::vector<std::string> want;
        const int64_t last = std::min<int64_t>(max_steps, 21) - 1;
        int64_t evaluation = 0;
        for (int64_t step = 0; step <= last; ++step) {
          want.push_back("train " + std::to_string(step));
          const bool by_epoch =
              every_epochs > 0 && step % 3 == 2 && (step / 3 + 1) % every_epochs == 0;
          const bool by_step = every_steps > 0 && (step + 1) % every_steps == 0;
          const bool due = by_epoch || by_step || step == last;
          ASSERT_EQ(schedule.EvaluatesAfter(step), due);
          if (!due) continue;
          for (int batch = 0; batch < 2; ++batch) {
            want.push_back("eval " + std::to_string(evaluation) + "/" + std::to_string(batch));
          }
          ++evaluation;
        }
        std::vector<std::string> got;
        for (int64_t i = 0; i < schedule.size(); ++i) {
          const PlannedBatch batch = schedule.At(i);
          got.push_back(batch.split == Split::kTrain ? "train " + std::to_string(batch.step)
                                                     : "eval " + std::to_string(batch.evaluation) +
                                                           "/" + std::to_string(batch.step));
        }
        ASSERT_EQ(got, want);
        ASSERT_EQ(schedule.evaluations(), evaluation);
      }
    }
  }
}

}  // namespace
}  // namespace hetero::job
