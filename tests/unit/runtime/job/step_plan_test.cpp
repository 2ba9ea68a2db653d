#include "runtime/job/step_plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/job/permutation.h"

namespace hetero::job {
namespace {

StepPlan::Options FashionMnist() {
  return {.samples = 60000, .batch_size_per_worker = 128, .ranks = 2, .epochs = 1};
}

TEST(StepPlanTest, KeepsTheTailOfSixtyThousandSamples) {
  const StepPlan plan(FashionMnist());
  EXPECT_EQ(plan.global_batch(), 256);
  EXPECT_EQ(plan.steps_per_epoch(), 235);
  EXPECT_EQ(plan.total_steps(), 235);
  EXPECT_EQ(plan.Share(0, 0), (SlotRange{0, 128}));
  EXPECT_EQ(plan.Share(0, 1), (SlotRange{128, 128}));
  // 60,000 - 234 x 256 = 96 slots are left.
  EXPECT_EQ(plan.Share(234, 0), (SlotRange{59904, 48}));
  EXPECT_EQ(plan.Share(234, 1), (SlotRange{59952, 48}));
}

TEST(StepPlanTest, TheFirstRankOfAPipelineTakesTheSharesOfAll) {
  StepPlan::Options options = {.samples = 103, .batch_size_per_worker = 5, .ranks = 6, .epochs = 1};
  const StepPlan whole(options);
  options.partitions = 3;
  const StepPlan cut(options);
  EXPECT_EQ(cut.global_batch(), whole.global_batch());
  EXPECT_EQ(cut.total_steps(), whole.total_steps());
  for (int64_t step = 0; step < cut.total_steps(); ++step) {
    for (int32_t first : {0, 3}) {
      SlotRange together = whole.Share(step, first);
      for (int32_t rank = first + 1; rank < first + 3; ++rank) {
        together.count += whole.Share(step, rank).count;
        EXPECT_EQ(cut.Share(step, rank).count, 0);
        EXPECT_EQ(cut.PipelineShare(step, rank), cut.PipelineShare(step, first));
        EXPECT_EQ(cut.LossScale(step, rank), cut.LossScale(step, first));
      }
      EXPECT_EQ(cut.Share(step, first), together);
    }
    EXPECT_NEAR(cut.LossScale(step, 0) + cut.LossScale(step, 3), 2, 1e-12);
  }
}

TEST(StepPlanTest, DropLeavesTheTailOut) {
  StepPlan::Options options = FashionMnist();
  options.last_batch = api::LastBatch::kDrop;
  EXPECT_EQ(StepPlan(options).steps_per_epoch(), 234);
  options.samples = 255;
  const StepPlan empty(options);
  EXPECT_EQ(empty.steps_per_epoch(), 0);
  EXPECT_EQ(empty.total_steps(), 0);
  EXPECT_EQ(empty.total_epochs(), 0);
}

TEST(StepPlanTest, EndsByEpochsOrStepsWhicheverComesFirst) {
  StepPlan::Options options = FashionMnist();
  options.epochs = 3;
  EXPECT_EQ(StepPlan(options).total_steps(), 705);
  options.max_steps = 300;
  EXPECT_EQ(StepPlan(options).total_steps(), 300);
  EXPECT_EQ(StepPlan(options).total_epochs(), 2);
  options.max_steps = 1000;
  EXPECT_EQ(StepPlan(options).total_steps(), 705);
  options.epochs.reset();
  EXPECT_EQ(StepPlan(options).total_steps(), 1000);
  EXPECT_EQ(StepPlan(options).total_epochs(), 5);
}

TEST(StepPlanTest, EpochsWithoutEndDoNotOverflow) {
  StepPlan::Options options = FashionMnist();
  options.epochs = INT64_MAX;
  options.max_steps = 10;
  EXPECT_EQ(StepPlan(options).total_steps(), 10);
}

TEST(StepPlanTest, StepsKnowTheirEpoch) {
  StepPlan::Options options = FashionMnist();
  options.epochs = 2;
  const StepPlan plan(options);
  EXPECT_TRUE(plan.IsLastOfEpoch(234));
  EXPECT_FALSE(plan.IsLastOfEpoch(235));
  const Step step = plan.At(236);
  EXPECT_EQ(step.epoch, 1);
  EXPECT_EQ(step.step_in_epoch, 1);
  EXPECT_EQ(step.slots, (SlotRange{256, 256}));
}

TEST(StepPlanTest, TailSmallerThanTheRanksLeavesSomeEmpty) {
  const StepPlan plan({.samples = 43, .batch_size_per_worker = 10, .ranks = 4, .epochs = 1});
  EXPECT_EQ(plan.total_steps(), 2);
  EXPECT_EQ(plan.Share(1, 0), (SlotRange{40, 1}));
  EXPECT_EQ(plan.Share(1, 2), (SlotRange{42, 1}));
  EXPECT_EQ(plan.Share(1, 3).count, 0);
  EXPECT_EQ(plan.LossScale(1, 3), 0);
}

// Naive twin: walk the slots one by one and deal them to the ranks.
TEST(StepPlanTest, SharesTileEveryStepAndEpoch) {
  for (int32_t ranks : {1, 2, 3, 5, 8}) {
    for (int64_t samples : {1, 7, 63, 64, 65, 500}) {
      for (int32_t accumulation : {1, 3}) {
        const StepPlan plan({.samples = samples,
                             .batch_size_per_worker = 4,
                             .ranks = ranks,
                             .accumulation = accumulation,
                             .epochs = 2});
        int64_t next = 0;
        for (int64_t step = 0; step < plan.total_steps(); ++step) {
          int64_t longest = 0, shortest = INT64_MAX;
          double scales = 0;
          for (int32_t rank = 0; rank < ranks; ++rank) {
            const SlotRange share = plan.Share(step, rank);
            ASSERT_EQ(share.first, next);
            next += share.count;
            ASSERT_GE(shortest, share.count) << "first ranks take the longer shares";
            longest = std::max(longest, share.count);
            shortest = std::min(shortest, share.count);
            scales += plan.LossScale(step, rank);
          }
          EXPECT_LE(longest - shortest, 1);
          EXPECT_LE(longest, 4 * accumulation);
          EXPECT_NEAR(scales, ranks, 1e-12);
          EXPECT_EQ(plan.IsLastOfEpoch(step), next == samples);
          if (next == samples) next = 0;
        }
        EXPECT_EQ(next, 0);
      }
    }
  }
}

// The mean over ranks of scaled mean losses is the mean over the step's samples.
TEST(StepPlanTest, LossScaleGivesTheMeanOverSamples) {
  const StepPlan plan({.samples = 11, .batch_size_per_worker = 4, .ranks = 2, .epochs = 1});
  const auto loss_of = [](int64_t slot) { return 1.0 / (slot + 1); };
  for (int64_t step = 0; step < plan.total_steps(); ++step) {
    double over_ranks = 0, over_samples = 0;
    for (int32_t rank = 0; rank < 2; ++rank) {
      const SlotRange share = plan.Share(step, rank);
      double sum = 0;
      for (int64_t i = 0; i < share.count; ++i) sum += loss_of(share.first + i);
      over_samples += sum;
      if (share.count > 0) over_ranks += plan.LossScale(step, rank) * sum / share.count / 2;
    }
    EXPECT_NEAR(over_ranks, over_samples / plan.At(step).slots.count, 1e-15);
  }
}

TEST(StepPlanTest, OrderIsTheSameForAnyNumberOfRanksAtAConstantGlobalBatch) {
  constexpr int64_t kSamples = 1003;
  const auto order = [](int32_t ranks) {
    const StepPlan plan(
        {.samples = kSamples, .batch_size_per_worker = 64 / ranks, .ranks = ranks, .epochs = 2});
    std::vector<std::vector<int64_t>> steps;
    for (int64_t step = 0; step < plan.total_steps(); ++step) {
      const Permutation permutation(17, plan.At(step).epoch, kSamples, {});
      steps.emplace_back();
      for (int32_t rank = 0; rank < ranks; ++rank) {
        const SlotRange share = plan.Share(step, rank);
        for (int64_t i = 0; i < share.count; ++i) {
          steps.back().push_back(permutation.At(share.first + i));
        }
      }
    }
    return steps;
  };
  const auto one = order(1);
  EXPECT_EQ(one.size(), 32u);
  for (int32_t ranks : {2, 4, 8}) EXPECT_EQ(order(ranks), one) << ranks;
}

}  // namespace
}  // namespace hetero::job
