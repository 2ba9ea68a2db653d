#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "tests/unit/runtime/train/rank_runner.h"

namespace hetero::train {
namespace {

// Parameters stay as they are, so every evaluation asks the same question.
TestJob FrozenJob(int32_t ranks) {
  TestJob job;
  job.training = MakeTraining("mlp", 12 / ranks, 4);
  job.training.optimizer.learning_rate = 0;
  job.training.evaluation = api::Evaluation{.every_steps = 2};
  job.samples = 48;
  job.validation_samples = 53;
  return job;
}

TEST(EvaluationTest, EverySampleOnceAndTheSameResultForAnyNumberOfRanks) {
  const EvaluationRecord one = RunRanks(FrozenJob(1), 1)[0].evaluations.at(0);
  EXPECT_EQ(one.samples, 53);
  for (int32_t ranks : {2, 3, 4}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    std::vector<int64_t> ids;
    for (const RankRecord& record : RunRanks(FrozenJob(ranks), ranks)) {
      ASSERT_TRUE(record.status.ok()) << record.status;
      ids.insert(ids.end(), record.validation_ids.begin(), record.validation_ids.end());
      ASSERT_EQ(record.evaluations.size(), 2u);
      for (const EvaluationRecord& evaluation : record.evaluations) {
        EXPECT_EQ(evaluation.samples, one.samples);
        EXPECT_EQ(evaluation.accuracy, one.accuracy);
        EXPECT_NEAR(evaluation.loss, one.loss, 1e-6 * one.loss);
      }
    }
    std::sort(ids.begin(), ids.end());
    std::vector<int64_t> want;  // each sample in each of the two evaluations
    for (int64_t id = 0; id < 53; ++id) want.insert(want.end(), {id, id});
    EXPECT_EQ(ids, want);
  }
}

// It scored whatever came. Of the two batches of the first evaluation rank 1 gets the second wrong.
TEST(EvaluationTest, ABatchOfAnotherTicketFailsTheJobByName) {
  const std::pair<std::function<void(feed::Ticket&)>, const char*> cases[] = {
      {[](feed::Ticket& ticket) { ticket.step = 3; },
       "gave 6 validation samples from slot 18 of batch 3 where batch 1 of an evaluation needs 6 "
       "from slot 18"},
      {[](feed::Ticket& ticket) { ticket.split = job::Split::kTrain; },
       "gave 6 training samples from slot 18 of batch 1 where"},
      {[](feed::Ticket& ticket) { ticket.slots.first = 12; },
       "gave 6 validation samples from slot 12 of batch 1 where batch 1 of an evaluation needs 6 "
       "from slot 18"}};
  for (const auto& [spoil, words] : cases) {
    TestJob job = FrozenJob(2);
    job.validation_samples = 24;
    job.spoil_batch = [&spoil = spoil](int32_t rank, feed::Batch& batch) {
      const bool validates = batch.ticket.split == job::Split::kValidation;
      if (rank == 1 && validates && batch.ticket.step == 1) spoil(batch.ticket);
    };
    for (const RankRecord& record : RunRanks(job, 2)) {
      EXPECT_TRUE(absl::IsInternal(record.status)) << record.status;
      EXPECT_THAT(std::string(record.status.message()), ::testing::HasSubstr(words));
      EXPECT_TRUE(record.evaluations.empty());
    }
  }
}

}  // namespace
}  // namespace hetero::train
