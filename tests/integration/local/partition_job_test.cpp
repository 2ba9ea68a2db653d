// Jobs whose model is cut into partitions: the stream, the losses and what is left are those of the
// same job without, whatever dies on the way.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <map>
#include <thread>

#include "tests/integration/local/slow_job.h"
#include "tests/integration/support/jobs.h"

namespace hetero {
namespace {

using testing::ExpectUndisturbedResult;
using testing::LocalRun;
using testing::NumbersInLog;
using testing::ProgramResult;
using testing::SlowJob;
using testing::SmallJobYaml;
using testing::TemporaryFolder;
using testing::WaitForFirstStep;

constexpr std::chrono::seconds kPatience(120);

// The slow job with a small model in two partitions.
std::vector<std::string> CutJob(int ranks, const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings = {
      "training.model={name: cut_net, plugin: '" HETERO_CUT_NET_PLUGIN "'}",
      "training.parallelism={partitions: 2, microbatches: 4}",
      "roles.gpu.replicas=" + std::to_string(ranks),
      "training.batchSizePerWorker=" + std::to_string(64 / ranks)};
  settings.insert(settings.end(), more.begin(), more.end());
  return SlowJob(settings);
}

std::string Checkpoint(const TemporaryFolder& folder, int every_steps) {
  return "training.checkpoint={uri: 'file://" + folder.path() +
         "', everySteps: " + std::to_string(every_steps) + "}";
}

// A process that was not replaced has opened its log once.
int Starts(const LocalRun& run, const std::string& name) {
  return static_cast<int>(NumbersInLog(run.log(name), "generation opened", "generation").size());
}

TEST(PipelineJob, VisionTransformerHasTheLossesOfTheWholeModel) {
  const auto losses = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "--set", "training.model.name=vit_b_16", "--set", "training.maxSteps=4", "--set",
        "training.batchSizePerWorker=4", "--set", "training.optimizer.learningRate=0.01", "--set",
        "pipeline=[{op: HorizontalFlip}, {op: Normalize}]",
        // A busy machine computes a step for long.
        "--set", "runPolicy.memberTimeoutSeconds=60"};
    for (const std::string& setting : more) arguments.insert(arguments.end(), {"--set", setting});
    LocalRun run(SmallJobYaml(), arguments);
    const ProgramResult result = run.Wait(kPatience * 2);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    const nlohmann::json report = run.report();
    std::map<int, double> losses;
    for (const nlohmann::json& point : report["lossCurve"]) losses[point["step"]] = point["loss"];
    return std::pair(losses, report.value("streamDigest", ""));
  };
  const auto [want, digest] = losses({});
  const auto [cut, cut_digest] = losses({"training.parallelism={partitions: 2, microbatches: 4}"});
  EXPECT_FALSE(digest.empty());
  EXPECT_EQ(cut_digest, digest);
  EXPECT_EQ(cut.size(), want.size());
  ASSERT_FALSE(want.empty());
  for (const auto& [step, loss] : want) {
    EXPECT_NEAR(cut.at(step), loss, 1e-4 * std::abs(loss)) << "step " << step;
  }
}

TEST(PipelineJob, TheStreamIsThatOfTheJobWithoutPartitions) {
  LocalRun two(SmallJobYaml(), CutJob(2));
  ExpectUndisturbedResult(two);
  LocalRun four(SmallJobYaml(), CutJob(4));
  ExpectUndisturbedResult(four);
}

TEST(PipelineJob, AKilledTrainerTakesItsPartitionFromAnotherPipeline) {
  LocalRun run(SmallJobYaml(), CutJob(4));
  ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
  kill(run.PidOf("gpu-3"), SIGKILL);
  const nlohmann::json report = ExpectUndisturbedResult(run);
  EXPECT_GE(report.value("generations", 0), 2);
  EXPECT_EQ(report.value("resumedFromStep", 0), 0);
  for (const char* survivor : {"gpu-0", "gpu-1", "gpu-2"}) {
    EXPECT_EQ(Starts(run, survivor), 1) << run.log(survivor);
    for (const int step : NumbersInLog(run.log(survivor), "generation broke", "step")) {
      EXPECT_GE(NumbersInLog(run.log(survivor), "first step of the generation", "step").back(),
                step);
    }
  }
}

TEST(PipelineJob, ALostPartitionComesBackFromTheCheckpoint) {
  for (const char* victim : {"gpu-0", "gpu-1"}) {
    TemporaryFolder checkpoints;
    LocalRun run(SmallJobYaml(), CutJob(2, {Checkpoint(checkpoints, 2)}));
    ASSERT_TRUE(run.WaitForLog("gpu-0", "wrote a checkpoint", kPatience));
    kill(run.PidOf(victim), SIGKILL);
    const nlohmann::json report = ExpectUndisturbedResult(run);
    EXPECT_GE(report.value("generations", 0), 2);
    EXPECT_NE(run.log("gpu-0").find("resumes from a checkpoint"), std::string::npos);
    const std::string survivor = std::string(victim) == "gpu-0" ? "gpu-1" : "gpu-0";
    EXPECT_EQ(Starts(run, survivor), 1) << run.log(survivor);
  }
}

TEST(PipelineJob, WithoutACheckpointTheJobBeginsAnew) {
  LocalRun run(SmallJobYaml(), CutJob(2));
  ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
  kill(run.PidOf("gpu-1"), SIGKILL);
  const nlohmann::json report = ExpectUndisturbedResult(run);
  EXPECT_GE(report.value("generations", 0), 2);
}

// Its layers are with nobody else; all bring them to rank 0 before it goes.
TEST(PipelineJob, ARankThatLeavesCostsNoStep) {
  for (const char* leaver : {"gpu-1", "gpu-0"}) {
    SCOPED_TRACE(leaver);
    TemporaryFolder checkpoints;
    LocalRun run(SmallJobYaml(),
                 CutJob(2, {Checkpoint(checkpoints, 1000), "runPolicy.maxRestarts=0"}));
    ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
    kill(run.PidOf(leaver), SIGTERM);
    const nlohmann::json report = ExpectUndisturbedResult(run);
    EXPECT_GE(report.value("generations", 0), 2);
    EXPECT_NE(run.log("gpu-0").find("resumes from a checkpoint"), std::string::npos);
    const std::string stays = std::string(leaver) == "gpu-0" ? "gpu-1" : "gpu-0";
    EXPECT_EQ(Starts(run, stays), 1) << run.log(stays);
  }
}

TEST(PipelineJob, AStopLeavesACheckpointThatAJobWithoutPartitionsGoesOnFrom) {
  TemporaryFolder checkpoints;
  LocalRun stopped(SmallJobYaml(), CutJob(2, {Checkpoint(checkpoints, 1000)}));
  ASSERT_TRUE(WaitForFirstStep(stopped, "gpu-0"));
  for (const char* name : {"gpu-0", "gpu-1"}) kill(stopped.PidOf(name), SIGTERM);
  EXPECT_EQ(stopped.Wait(kPatience).exit_code, 130);
  const nlohmann::json first = stopped.report();
  EXPECT_EQ(first["state"], "Stopped");
  ASSERT_TRUE(first.contains("checkpointURI")) << stopped.log("gpu-0");
  LocalRun resumed(SmallJobYaml(),
                   CutJob(2, {Checkpoint(checkpoints, 1000),
                              "training.parallelism={partitions: 1, microbatches: 1}"}));
  EXPECT_EQ(ExpectUndisturbedResult(resumed)["resumedFromStep"], first["steps"]);
}

}  // namespace
}  // namespace hetero
