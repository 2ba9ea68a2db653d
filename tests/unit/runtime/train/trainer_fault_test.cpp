#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/mutex.h"
#include "tests/unit/runtime/train/rank_runner.h"

namespace hetero::train {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// The machine's time, but nobody waits for a grace period.
class ImpatientClock : public base::Clock {
 public:
  base::Instant Now() const override { return base::Clock::Real().Now(); }
  base::WallTime WallNow() const override { return base::Clock::Real().WallNow(); }
  bool SleepFor(base::Duration, std::stop_token stop) override { return !stop.stop_requested(); }
};

// Blocks until `stop` is requested.
void WaitUntil(std::stop_token stop) {
  base::Mutex mutex;  // guards nothing but the wait
  base::CondVar changed;
  const base::MutexLock lock(mutex);
  changed.Wait(mutex, stop, [] { return false; });
}

TestJob MakeJob() {
  TestJob job;
  job.training = MakeTraining("mlp", 8, 40);
  job.samples = 200;
  return job;
}

TEST(TrainerFaultTest, AStopAtOneRankEndsAllAtTheSameStep) {
  TestJob job = MakeJob();
  job.after_step = [](int32_t rank, const StepRecord& step, std::vector<std::stop_source>& stops) {
    if (rank == 1 && step.step == 5) stops[1].request_stop();
  };
  const std::vector<RankRecord> records = RunRanks(job, 3);
  for (const RankRecord& record : records) {
    EXPECT_TRUE(absl::IsCancelled(record.status)) << record.status;
    EXPECT_EQ(record.steps.size(), records[0].steps.size());
  }
  EXPECT_LT(records[0].steps.size(), 10u);
}

TEST(TrainerFaultTest, AStopCutsAWaitForASilentRank) {
  ImpatientClock clock;
  TestJob job = MakeJob();
  job.clock = &clock;
  // Rank 1 goes silent before the exchange of its fourth step, until rank 0 has returned.
  std::stop_source returned;
  job.before_batch = [&](int32_t rank, int64_t index, std::vector<std::stop_source>& stops) {
    if (rank == 1 && index == 3) {
      stops[0].request_stop();
      WaitUntil(returned.get_token());
    }
    return absl::OkStatus();
  };
  job.after_run = [&](int32_t rank) {
    if (rank == 0) returned.request_stop();
  };
  const std::vector<RankRecord> records = RunRanks(job, 2);
  EXPECT_TRUE(absl::IsCancelled(records[0].status)) << records[0].status;
  EXPECT_TRUE(absl::IsUnavailable(records[1].status)) << records[1].status;
}

TEST(TrainerFaultTest, AnInputErrorOfOneRankEndsAllWithIt) {
  TestJob job = MakeJob();
  job.before_batch = [](int32_t rank, int64_t index, std::vector<std::stop_source>&) {
    if (rank == 1 && index == 3) return absl::DataLossError("shard 7 cannot be read");
    return absl::OkStatus();
  };
  const std::vector<RankRecord> records = RunRanks(job, 3);
  EXPECT_EQ(records[1].status, absl::DataLossError("shard 7 cannot be read"));
  for (size_t rank : {0, 2}) {
    EXPECT_EQ(records[rank].status, absl::DataLossError("rank 1 stopped: shard 7 cannot be read"));
    EXPECT_THAT(records[rank].steps, SizeIs(3));
  }
}

// It counted as the end of the generation, and generations followed each other without end.
TEST(TrainerFaultTest, AnInputErrorLooksLikeTheEndOfAGeneration) {
  for (const int32_t ranks : {1, 3}) {
    for (const int64_t failing : {3, 12}) {  // a batch of training, one of the evaluation
      TestJob job = MakeJob();
      job.training.max_steps = 10;
      job.validation_samples = 200;
      job.generations = 4;
      std::atomic<int> failures = 0;
      job.before_batch = [&](int32_t rank, int64_t index, std::vector<std::stop_source>&) {
        if (rank != ranks / 2 || index != failing) return absl::OkStatus();
        ++failures;
        return absl::AbortedError("nobody can produce batch 3");
      };
      for (const RankRecord& record : RunRanks(job, ranks)) {
        EXPECT_TRUE(absl::IsInternal(record.status)) << record.status;
        EXPECT_THAT(record.status.message(), HasSubstr("nobody can produce batch 3"));
        EXPECT_EQ(record.starts, 1);
      }
      EXPECT_EQ(failures, 1);
    }
  }
}

TEST(TrainerFaultTest, AnInputErrorDuringEvaluationEndsAll) {
  TestJob job = MakeJob();
  job.training.max_steps = 2;
  job.validation_samples = 64;
  job.before_batch = [](int32_t rank, int64_t index, std::vector<std::stop_source>&) {
    if (rank == 0 && index == 3) return absl::DataLossError("shard 7 cannot be read");
    return absl::OkStatus();
  };
  const std::vector<RankRecord> records = RunRanks(job, 2);
  EXPECT_THAT(records[0].status.message(), HasSubstr("shard 7"));
  EXPECT_THAT(records[1].status.message(), HasSubstr("rank 0 stopped"));
}

TEST(TrainerFaultTest, GradientsThatAreNotFiniteFailWithStepAndRemedy) {
  TestJob job = MakeJob();
  job.training.optimizer.learning_rate = 1e30;
  for (const RankRecord& record : RunRanks(job, 2)) {
    EXPECT_TRUE(absl::IsFailedPrecondition(record.status)) << record.status;
    EXPECT_THAT(record.status.message(), HasSubstr("step "));
    EXPECT_THAT(record.status.message(), HasSubstr("learningRate"));
  }
}

TEST(TrainerFaultTest, SkipGoesOnWithoutTheStep) {
  TestJob job = MakeJob();
  job.training.max_steps = 10;
  job.training.optimizer.learning_rate = 1e30;
  job.training.stop_on_non_finite = api::NonFiniteAction::kSkip;
  for (const RankRecord& record : RunRanks(job, 2)) {
    EXPECT_TRUE(record.status.ok()) << record.status;
    EXPECT_THAT(record.steps, SizeIs(10));
  }
}

TEST(TrainerFaultTest, UnknownModelIsNamed) {
  TestJob job = MakeJob();
  job.training.model.name = "resnet19";
  const std::vector<RankRecord> records = RunRanks(job, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(records[0].status));
  EXPECT_THAT(records[0].status.message(), HasSubstr("resnet19"));
}

TEST(TrainerFaultTest, AScriptIsNothingForATrainer) {
  TestJob job = MakeJob();
  job.training.script = api::Script{.command = {"python3", "train.py"}};
  const std::vector<RankRecord> records = RunRanks(job, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(records[0].status));
  EXPECT_THAT(records[0].status.message(), HasSubstr("spec.training.script: "));
}

}  // namespace
}  // namespace hetero::train
