// Training of models that are cut into partitions, from the first step to the last.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/train/rank_runner.h"

namespace hetero::train {
namespace {

using hetero::testing::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TestJob MakeJob(int32_t partitions, int64_t max_steps = 30) {
  TestJob job;
  job.training = MakeTraining("cut_net", 8, max_steps);
  job.training.model.plugin = HETERO_CUT_NET_PLUGIN;
  job.training.parallelism = {.partitions = partitions, .microbatches = partitions == 1 ? 1 : 4};
  job.samples = 205;  // 12 steps of 16 and a short one; 6 of 32 and a short one
  return job;
}

TestJob WithCheckpoints(TestJob job, const TemporaryFolder& folder) {
  job.training.checkpoint = api::Checkpoint{.uri = "file://" + folder.path(), .every_steps = 7};
  return job;
}

std::vector<RankRecord> RunAll(const TestJob& job, int32_t ranks) {
  std::vector<RankRecord> records = RunRanks(job, ranks);
  for (const RankRecord& record : records) EXPECT_TRUE(record.status.ok()) << record.status;
  return records;
}

// On all ranks of `records`, from the step after `from` on.
void ExpectSameTraining(const std::vector<RankRecord>& records, const RankRecord& want,
                        int64_t from = 0) {
  for (const RankRecord& record : records) {
    EXPECT_EQ(record.digest_high, want.digest_high);
    EXPECT_EQ(record.digest_low, want.digest_low);
    EXPECT_EQ(record.samples_consumed, want.samples_consumed);
    ASSERT_EQ(static_cast<int64_t>(record.steps.size() + static_cast<size_t>(from)),
              static_cast<int64_t>(want.steps.size()));
    for (const StepRecord& step : record.steps) {
      const StepRecord& other = want.steps[static_cast<size_t>(step.step - 1)];
      EXPECT_NEAR(step.loss, other.loss, 1e-4 * std::abs(other.loss)) << "step " << step.step;
      EXPECT_EQ(step.samples, other.samples);
    }
  }
}

TEST(PipelineTrainingTest, LossesAndStreamAreThoseOfTheWholeModel) {
  for (const auto& [ranks, partitions] : {std::pair{2, 2}, {4, 2}, {3, 3}}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks, partitions: " + std::to_string(partitions));
    const std::vector<RankRecord> whole = RunAll(MakeJob(1), ranks);
    const std::vector<RankRecord> cut = RunAll(MakeJob(partitions), ranks);
    ExpectSameTraining(cut, whole[0]);
    // The first rank of a pipeline takes the samples of all of them.
    for (int32_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(cut[static_cast<size_t>(rank)].sample_ids.empty(), rank % partitions != 0);
    }
    for (int32_t pipeline = 1; pipeline < ranks / partitions; ++pipeline) {
      for (int32_t stage = 0; stage < partitions; ++stage) {
        EXPECT_EQ(cut[static_cast<size_t>(pipeline * partitions + stage)].epoch_crcs,
                  cut[static_cast<size_t>(stage)].epoch_crcs);
      }
    }
  }
}

TEST(PipelineTrainingTest, ClippingAccumulationAndAdamWToo) {
  const auto make = [](int32_t partitions) {
    TestJob job = MakeJob(partitions);
    job.training.optimizer = {.name = api::OptimizerKind::kAdamW, .learning_rate = 1e-3};
    job.training.gradient_clip_norm = 0.1;
    job.training.gradient_accumulation_steps = 2;
    job.training.loss.label_smoothing = 0.1;
    return job;
  };
  ExpectSameTraining(RunAll(make(2), 4), RunAll(make(1), 4)[0]);
}

TEST(PipelineTrainingTest, EveryValidationSampleCountsOnce) {
  const auto make = [](int32_t partitions) {
    TestJob job = MakeJob(partitions, 20);
    job.validation_samples = 75;
    job.training.evaluation = api::Evaluation{.every_steps = 8};
    return job;
  };
  const RankRecord whole = RunAll(make(1), 2)[0];
  ASSERT_THAT(whole.evaluations, SizeIs(3));
  for (const RankRecord& record : RunAll(make(2), 2)) {
    ASSERT_THAT(record.evaluations, SizeIs(3));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(record.evaluations[i].samples, 75);
      EXPECT_NEAR(record.evaluations[i].loss, whole.evaluations[i].loss, 1e-4);
      EXPECT_NEAR(record.evaluations[i].accuracy, whole.evaluations[i].accuracy, 1.5 / 75);
    }
  }
}

TEST(PipelineTrainingTest, ACheckpointIsOfTheWholeModelAndTrainingGoesOnToTheBit) {
  const std::vector<RankRecord> straight = RunAll(MakeJob(2, 30), 2);
  TemporaryFolder folder;
  const std::vector<RankRecord> first = RunAll(WithCheckpoints(MakeJob(2, 16), folder), 2);
  ASSERT_THAT(first[0].checkpoints, Not(IsEmpty()));
  EXPECT_EQ(first[0].checkpoints.back().second, 16);
  EXPECT_THAT(first[1].checkpoints, IsEmpty());
  const std::vector<RankRecord> second = RunAll(WithCheckpoints(MakeJob(2, 30), folder), 2);
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(second[rank].resumed_from, 16);
    EXPECT_EQ(second[rank].epoch_crcs.back(), straight[rank].epoch_crcs.back());
  }
  ExpectSameTraining(second, straight[0], 16);
}

TEST(PipelineTrainingTest, JobsWithAndWithoutPartitionsGoOnFromEachOther) {
  const RankRecord straight = RunAll(MakeJob(1, 36), 2)[0];
  TemporaryFolder folder;
  RunAll(WithCheckpoints(MakeJob(1, 10), folder), 2);
  ExpectSameTraining(RunAll(WithCheckpoints(MakeJob(2, 20), folder), 2),
                     RunAll(MakeJob(1, 20), 2)[0], 10);
  const std::vector<RankRecord> last = RunAll(WithCheckpoints(MakeJob(1, 36), folder), 2);
  EXPECT_EQ(last[0].resumed_from, 20);
  ExpectSameTraining(last, straight, 20);
  // Another number of ranks, with as many samples per step.
  TestJob four = WithCheckpoints(MakeJob(2, 40), folder);
  four.training.batch_size_per_worker = 4;
  EXPECT_EQ(RunAll(four, 4)[0].resumed_from, 36);
}

TEST(PipelineTrainingTest, TheResultIsTheWholeModel) {
  TemporaryFolder folder;
  TestJob job = MakeJob(2, 10);
  job.validation_samples = 64;
  job.output_folder = folder.path();
  const RankRecord trained = RunAll(job, 2)[0];
  TestJob again = MakeJob(1, 1);
  again.training.model.weights = "file://" + folder.path() + "/model.safetensors";
  again.training.optimizer.learning_rate = 0;
  again.validation_samples = 64;
  const RankRecord loaded = RunAll(again, 1)[0];
  EXPECT_NEAR(loaded.evaluations.back().loss, trained.evaluations.back().loss, 1e-5);
}

TEST(PipelineTrainingTest, AStopLeavesACheckpointOfThatStep) {
  TemporaryFolder folder;
  TestJob job = WithCheckpoints(MakeJob(2, 100'000), folder);
  job.training.checkpoint->every_steps = 100'000;
  job.after_step = [](int32_t rank, const StepRecord& step, std::vector<std::stop_source>& stops) {
    if (rank == 1 && step.step == 5) stops[1].request_stop();
  };
  const std::vector<RankRecord> records = RunRanks(job, 2);
  for (const RankRecord& record : records) EXPECT_TRUE(absl::IsCancelled(record.status));
  ASSERT_THAT(records[0].checkpoints, SizeIs(1));
  EXPECT_EQ(records[0].checkpoints[0].second, static_cast<int64_t>(records[0].steps.size()));
}

TEST(PipelineTrainingTest, AnErrorOfTheInputEndsAnEvaluationOnAllStages) {
  for (const int32_t failing : {0, 1}) {
    TestJob job = MakeJob(2, 10);
    job.validation_samples = 64;
    job.before_batch = [failing](int32_t rank, int64_t index, std::vector<std::stop_source>&) {
      return rank == failing && index == 12 ? absl::InternalError("the disk is gone")
                                            : absl::OkStatus();
    };
    const std::vector<RankRecord> records = RunRanks(job, 2);
    for (const RankRecord& record : records) {
      EXPECT_TRUE(absl::IsInternal(record.status)) << record.status;
      EXPECT_THAT(record.status.message(), HasSubstr("the disk is gone"));
    }
  }
}

TEST(PipelineTrainingTest, TheCeilingProbeChangesNothing) {
  const RankRecord plain = RunAll(MakeJob(2, 12), 2)[0];
  TestJob job = MakeJob(2, 12);
  job.ceiling_probe_steps = 3;
  const std::vector<RankRecord> probed = RunAll(job, 2);
  EXPECT_GT(probed[0].ceiling, 0);
  for (size_t i = 0; i < plain.steps.size(); ++i) {
    EXPECT_EQ(probed[0].steps[i].loss, plain.steps[i].loss);
  }
}

TEST(PipelineTrainingTest, AModelWithoutCutPointsIsRefused) {
  TestJob job = MakeJob(2, 3);
  job.training.model = {.name = "mlp"};
  for (const RankRecord& record : RunRanks(job, 2)) {
    EXPECT_THAT(record.status.message(),
                HasSubstr("spec.training.parallelism.partitions: the model has no cut points"));
  }
  for (const RankRecord& record : RunRanks(MakeJob(2, 3), 3)) {
    EXPECT_THAT(record.status.message(), HasSubstr("must divide the number of ranks (3), got 2"));
  }
}

}  // namespace
}  // namespace hetero::train
