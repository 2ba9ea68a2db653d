// Jobs that stop and go on from a checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/crc32c.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/train/file_size_limit.h"
#include "tests/unit/runtime/train/rank_runner.h"

namespace hetero::train {
namespace {

using hetero::testing::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TestJob MakeJob(int64_t max_steps) {
  TestJob job;
  job.training = MakeTraining("mlp", 16, max_steps);
  job.samples = 200;  // 12.5 steps of 16: steps 13 and 26 are short
  return job;
}

TestJob WithCheckpoints(TestJob job, const TemporaryFolder& folder) {
  job.training.checkpoint = api::Checkpoint{.uri = "file://" + folder.path(), .every_steps = 5};
  return job;
}

// Losses of the steps from `first` on, by step.
std::vector<double> LossesFrom(const RankRecord& record, int64_t first) {
  std::vector<double> losses;
  for (const StepRecord& step : record.steps) {
    if (step.step >= first) losses.push_back(step.loss);
  }
  return losses;
}

void ExpectSameStream(const RankRecord& a, const RankRecord& b) {
  EXPECT_EQ(a.digest_high, b.digest_high);
  EXPECT_EQ(a.digest_low, b.digest_low);
  EXPECT_EQ(a.samples_consumed, b.samples_consumed);
}

void EraseFromManifest(const std::string& folder, const std::vector<std::string>& fields) {
  nlohmann::ordered_json manifest =
      nlohmann::ordered_json::parse(hetero::testing::ReadFileOrDie(folder + "/manifest.json"));
  for (const std::string& field : fields) manifest.erase(field);
  const std::string text = manifest.dump(2) + "\n";
  hetero::testing::WriteFile(folder + "/manifest.json", text);
  hetero::testing::WriteFile(folder + "/DONE",
                             absl::StrFormat("%08x\n", base::Crc32c(text.data(), text.size())));
}

RankRecord RunOne(const TestJob& job) {
  RankRecord record = RunRanks(job, 1).front();
  EXPECT_TRUE(record.status.ok()) << record.status;
  return record;
}

TEST(CheckpointResumeTest, TwentyAndTwentyStepsAreFortyToTheBit) {
  for (const char* optimizer : {"SGD", "AdamW"}) {
    const bool sgd = std::string(optimizer) == "SGD";
    const auto with_optimizer = [&](TestJob job) {
      job.training.optimizer.name = sgd ? api::OptimizerKind::kSgd : api::OptimizerKind::kAdamW;
      if (!sgd) job.training.optimizer.learning_rate = 1e-3;
      return job;
    };
    const RankRecord straight = RunOne(with_optimizer(MakeJob(40)));
    TemporaryFolder folder;
    const RankRecord first = RunOne(WithCheckpoints(with_optimizer(MakeJob(20)), folder));
    EXPECT_EQ(first.checkpoints.back().second, 20);
    const RankRecord second = RunOne(WithCheckpoints(with_optimizer(MakeJob(40)), folder));
    EXPECT_EQ(second.resumed_from, 20);
    EXPECT_THAT(second.steps, SizeIs(20));
    EXPECT_EQ(LossesFrom(second, 21), LossesFrom(straight, 21)) << optimizer;
    EXPECT_EQ(second.epoch_crcs.back(), straight.epoch_crcs.back()) << optimizer;
    ExpectSameStream(second, straight);
  }
}

TEST(CheckpointResumeTest, StatisticsOfBatchNormGoOnToo) {
  const auto make = [](int64_t steps) {
    TestJob job = MakeJob(steps);
    job.training.model.name = "resnet18";
    job.training.batch_size_per_worker = 4;
    job.image = {32, 32, 3};
    return job;
  };
  const RankRecord straight = RunOne(make(4));
  TemporaryFolder folder;
  RunOne(WithCheckpoints(make(2), folder));
  const RankRecord second = RunOne(WithCheckpoints(make(4), folder));
  EXPECT_EQ(second.resumed_from, 2);
  EXPECT_EQ(LossesFrom(second, 3), LossesFrom(straight, 3));
  EXPECT_EQ(second.epoch_crcs.back(), straight.epoch_crcs.back());
}

TEST(CheckpointResumeTest, AnotherNumberOfRanksGoesOnWithTheSameStream) {
  const auto make = [](int64_t steps, int32_t ranks, const TemporaryFolder& folder) {
    TestJob job = WithCheckpoints(MakeJob(steps), folder);
    job.training.batch_size_per_worker = 16 / ranks;
    return job;
  };
  const RankRecord straight = RunOne(MakeJob(30));
  TemporaryFolder folder;
  RankRecord last;
  for (const auto& [ranks, steps] : {std::pair{2, 10}, {1, 18}, {4, 30}}) {
    for (const RankRecord& record : RunRanks(make(steps, ranks, folder), ranks)) {
      EXPECT_TRUE(record.status.ok()) << record.status;
      last = record;
    }
  }
  EXPECT_EQ(last.resumed_from, 18);
  ExpectSameStream(last, straight);
}

TEST(CheckpointResumeTest, AStopLeavesACheckpointOfTheStepAllRanksStoppedAt) {
  TemporaryFolder folder;
  TestJob job = WithCheckpoints(MakeJob(1000), folder);
  job.training.checkpoint->every_steps = 100'000;
  job.after_step = [](int32_t rank, const StepRecord& step, std::vector<std::stop_source>& stops) {
    if (rank == 1 && step.step == 7) stops[1].request_stop();
  };
  const std::vector<RankRecord> records = RunRanks(job, 2);
  for (const RankRecord& record : records) EXPECT_TRUE(absl::IsCancelled(record.status));
  ASSERT_THAT(records[0].checkpoints, SizeIs(1));
  EXPECT_THAT(records[1].checkpoints, IsEmpty());
  EXPECT_EQ(records[0].checkpoints[0].second, static_cast<int64_t>(records[0].steps.size()));
  EXPECT_EQ(records[0].steps.size(), records[1].steps.size());
}

TEST(CheckpointResumeTest, AJobThatIsDoneOnlyEvaluatesAgainWhatItHadNot) {
  TemporaryFolder folder;
  TestJob job = WithCheckpoints(MakeJob(10), folder);
  job.validation_samples = 64;
  const RankRecord first = RunOne(job);
  EXPECT_THAT(first.evaluations, SizeIs(1));
  const RankRecord again = RunOne(job);
  EXPECT_THAT(again.steps, IsEmpty());
  EXPECT_THAT(again.evaluations, IsEmpty());
  ExpectSameStream(again, first);
}

TEST(CheckpointResumeTest, AnEvaluationThatWasCutShortIsMadeInFull) {
  const auto make = [](const TemporaryFolder& folder) {
    TestJob job = WithCheckpoints(MakeJob(20), folder);
    job.validation_samples = 64;
    job.training.evaluation = api::Evaluation{.every_steps = 10};
    return job;
  };
  TemporaryFolder folder, other;
  TestJob cut = make(folder);
  // Batch 11 is the second of the first evaluation.
  cut.before_batch = [](int32_t, int64_t index, std::vector<std::stop_source>& stops) {
    if (index == 11) stops[0].request_stop();
    return absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsCancelled(RunRanks(cut, 1)[0].status));
  const RankRecord resumed = RunOne(make(folder));
  EXPECT_EQ(resumed.resumed_from, 10);
  const RankRecord straight = RunOne(make(other));
  ASSERT_THAT(resumed.evaluations, SizeIs(2));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(resumed.evaluations[i].loss, straight.evaluations[i].loss);
    EXPECT_EQ(resumed.evaluations[i].samples, 64);
  }
}

TEST(CheckpointResumeTest, NeverStartsAnewAndLeavesTheOthersAlone) {
  TemporaryFolder folder;
  TestJob job = WithCheckpoints(MakeJob(20), folder);
  RunOne(job);
  job.run = "run-2";
  job.training.max_steps = 12;
  job.training.checkpoint->resume = api::ResumeMode::kNever;
  const RankRecord fresh = RunOne(job);
  EXPECT_EQ(fresh.resumed_from, 0);
  EXPECT_THAT(fresh.steps, SizeIs(12));
  EXPECT_TRUE(std::filesystem::exists(folder / "step-000000000020"));
  EXPECT_TRUE(std::filesystem::exists(folder / "step-000000000012"));
  // But what was done in this very run is not done again after a restart.
  job.training.max_steps = 14;
  EXPECT_EQ(RunOne(job).resumed_from, 12);
}

// Steps of as many samples, at another rate.
TEST(CheckpointResumeTest, MoreRanksSilentlyRaisedTheLearningRate) {
  TemporaryFolder folder;
  TestJob job = WithCheckpoints(MakeJob(5), folder);
  job.training.batch_size_per_worker = 8;
  job.training.schedule.scale_learning_rate = api::LearningRateScaling::kLinearWithWorldSize;
  RunRanks(job, 2);
  job.training.batch_size_per_worker = 4;
  job.training.max_steps = 10;
  for (const RankRecord& record : RunRanks(job, 4)) {
    EXPECT_TRUE(absl::IsFailedPrecondition(record.status)) << record.status;
    EXPECT_THAT(record.status.message(),
                HasSubstr("was trained by 2 ranks, this job has 4, and "
                          "spec.training.schedule.scaleLearningRate: LinearWithWorldSize"));
    EXPECT_THAT(record.steps, IsEmpty());
  }
  job.training.schedule.scale_learning_rate = api::LearningRateScaling::kNone;
  job.training.optimizer.learning_rate *= 2;
  for (const RankRecord& record : RunRanks(job, 4)) {
    EXPECT_TRUE(record.status.ok()) << record.status;
    EXPECT_EQ(record.resumed_from, 5);
  }
}

// Of 12.5 steps an epoch Drop leaves out the last half.
TEST(CheckpointResumeTest, AnotherPlaceInTheEpochWasNotNoticed) {
  TemporaryFolder folder;
  TestJob job = WithCheckpoints(MakeJob(15), folder);
  RunOne(job);
  // As the first version wrote it.
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.is_directory()) EraseFromManifest(entry.path(), {"lastBatch", "shuffle", "pipeline"});
  }
  job.training.last_batch = api::LastBatch::kDrop;
  job.training.max_steps = 20;
  const RankRecord refused = RunRanks(job, 1).front();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status)) << refused.status;
  EXPECT_THAT(refused.status.message(),
              HasSubstr("stood before slot 32 of epoch 1 after step 15, but this job stands before "
                        "slot 48 of epoch 1"));
  job.training.last_batch = api::LastBatch::kKeep;
  EXPECT_EQ(RunOne(job).resumed_from, 15);
}

TEST(CheckpointResumeTest, NeverReplacedAnotherRunsCheckpointOfTheSameStep) {
  TemporaryFolder folder;
  TestJob job = WithCheckpoints(MakeJob(10), folder);
  RunOne(job);
  job.run = "run-2";
  job.training.checkpoint->resume = api::ResumeMode::kNever;
  EXPECT_EQ(RunOne(job).resumed_from, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "step-000000000010-2"));
  // The first run's are as they were.
  job.run = "run-1";
  EXPECT_EQ(RunOne(job).resumed_from, 10);
}

TEST(CheckpointResumeTest, AnotherDatasetIsRefusedOnAllRanks) {
  TemporaryFolder folder;
  TestJob job = WithCheckpoints(MakeJob(5), folder);
  RunRanks(job, 2);
  job.fingerprint = "fedcba9876543210";
  for (const RankRecord& record : RunRanks(job, 2)) {
    EXPECT_TRUE(absl::IsFailedPrecondition(record.status)) << record.status;
    EXPECT_THAT(record.status.message(), HasSubstr("fingerprint of the dataset"));
    EXPECT_THAT(record.steps, IsEmpty());
  }
}

TEST(CheckpointResumeTest, AnotherNumberOfSamplesPerStepIsRefused) {
  TemporaryFolder folder;
  TestJob job = WithCheckpoints(MakeJob(5), folder);
  RunOne(job);
  job.training.gradient_accumulation_steps = 2;
  const RankRecord record = RunRanks(job, 1).front();
  EXPECT_TRUE(absl::IsFailedPrecondition(record.status)) << record.status;
  EXPECT_THAT(record.status.message(), HasSubstr("x accumulation) 16 (this job: 32)"));
}

TEST(CheckpointResumeTest, AFullDiskIsReportedAndTrainingGoesOn) {
  TemporaryFolder folder;
  TestJob job = WithCheckpoints(MakeJob(30), folder);
  // Until the first write, of step 5, has failed, however long it takes.
  std::optional<FileSizeLimit> full;
  job.after_step = [&](int32_t, const StepRecord& step, std::vector<std::stop_source>&) {
    if (step.step == 1) full.emplace(4096);
  };
  job.after_checkpoint_problem = [&] { full.reset(); };
  const RankRecord record = RunOne(job);
  EXPECT_THAT(record.steps, SizeIs(30));
  ASSERT_THAT(record.checkpoint_problems, Not(IsEmpty()));
  EXPECT_THAT(record.checkpoint_problems[0], HasSubstr("could not be written"));
  EXPECT_EQ(record.checkpoints.back().second, 30);
}

}  // namespace
}  // namespace hetero::train
