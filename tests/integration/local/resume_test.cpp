// Jobs that are stopped or killed, and run again with the same checkpoint folder.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <thread>

#include "tests/integration/local/slow_job.h"
#include "tests/integration/support/jobs.h"

namespace hetero {
namespace {

using testing::ExpectUndisturbedResult;
using testing::LocalRun;
using testing::ProgramResult;
using testing::ProgramRun;
using testing::SlowJob;
using testing::SmallJobYaml;
using testing::TemporaryFolder;
using testing::WaitForFirstStep;

constexpr std::chrono::seconds kPatience(60);

std::string Checkpoint(const TemporaryFolder& folder, int every_steps) {
  return "training.checkpoint={uri: 'file://" + folder.path() +
         "', everySteps: " + std::to_string(every_steps) + "}";
}

std::map<int, double> Losses(const nlohmann::json& report) {
  std::map<int, double> losses;
  for (const nlohmann::json& point : report["lossCurve"]) losses[point["step"]] = point["loss"];
  return losses;
}

// On a cluster, where nobody locks the output, that has always been taken.
TEST(Resume, CheckpointsMayBeInTheOutputFolder) {
  TemporaryFolder folder;
  folder.Write("job.yaml", SmallJobYaml());
  ProgramRun run("hetero-runtime", {"local", folder / "job.yaml", "--output", folder.path(),
                                    "--set", Checkpoint(folder, 3)});
  const ProgramResult result = run.Wait(kPatience);
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

TEST(Resume, AKilledJobOfOneRankGoesOnToTheBit) {
  const std::vector<std::string> one_rank = {"roles.gpu.replicas=1",
                                             "training.batchSizePerWorker=64"};
  LocalRun straight(SmallJobYaml(), SlowJob(one_rank));
  const std::map<int, double> expected = Losses(ExpectUndisturbedResult(straight));

  TemporaryFolder checkpoints;
  std::vector<std::string> settings = one_rank;
  settings.push_back(Checkpoint(checkpoints, 3));
  {
    LocalRun killed(SmallJobYaml(), SlowJob(settings));
    ASSERT_TRUE(killed.WaitForLog("gpu-0", "wrote a checkpoint", kPatience));
    killed.program().Signal(SIGKILL);
    killed.Wait(kPatience);
  }
  LocalRun resumed(SmallJobYaml(), SlowJob(settings));
  const nlohmann::json report = ExpectUndisturbedResult(resumed);
  EXPECT_GT(report.value("resumedFromStep", 0), 0);
  EXPECT_EQ(report["checkpointURI"], "file://" + checkpoints.path() + "/step-000000000032");
  const std::map<int, double> losses = Losses(report);
  EXPECT_FALSE(losses.empty());
  for (const auto& [step, loss] : losses) EXPECT_EQ(loss, expected.at(step)) << "step " << step;
}

TEST(Resume, AnotherNumberOfRanksGoesOnWithTheSameStream) {
  TemporaryFolder checkpoints;
  for (const int ranks : {2, 1, 4}) {
    const std::vector<std::string> settings = {
        "roles.gpu.replicas=" + std::to_string(ranks),
        "training.batchSizePerWorker=" + std::to_string(64 / ranks), Checkpoint(checkpoints, 3)};
    LocalRun run(SmallJobYaml(), SlowJob(settings));
    if (ranks == 4) {
      EXPECT_GT(ExpectUndisturbedResult(run).value("resumedFromStep", 0), 0);
      break;
    }
    ASSERT_TRUE(run.WaitForLog("gpu-0", "wrote a checkpoint", kPatience));
    run.program().Signal(SIGKILL);
    run.Wait(kPatience);
  }
}

TEST(Resume, TrainersThatAreAllToldToEndLeaveACheckpointOfOneStep) {
  TemporaryFolder checkpoints;
  const std::vector<std::string> settings = SlowJob({Checkpoint(checkpoints, 1000)});
  LocalRun stopped(SmallJobYaml(), settings);
  ASSERT_TRUE(WaitForFirstStep(stopped, "gpu-0"));
  for (const char* name : {"gpu-0", "gpu-1"}) kill(stopped.PidOf(name), SIGTERM);
  const ProgramResult result = stopped.Wait(kPatience);
  EXPECT_EQ(result.exit_code, 130) << result.output;
  const nlohmann::json first = stopped.report();
  EXPECT_EQ(first["state"], "Stopped");
  ASSERT_TRUE(first.contains("checkpointURI")) << result.output;
  LocalRun resumed(SmallJobYaml(), settings);
  const nlohmann::json report = ExpectUndisturbedResult(resumed);
  EXPECT_EQ(report["resumedFromStep"], first["steps"]);
}

TEST(Resume, CtrlCLeavesACheckpointToo) {
  TemporaryFolder checkpoints;
  const std::vector<std::string> settings = SlowJob({Checkpoint(checkpoints, 1000)});
  LocalRun stopped(SmallJobYaml(), settings);
  ASSERT_TRUE(WaitForFirstStep(stopped, "gpu-0"));
  stopped.program().Signal(SIGINT);
  EXPECT_EQ(stopped.Wait(kPatience).exit_code, 130);
  LocalRun resumed(SmallJobYaml(), settings);
  EXPECT_GT(ExpectUndisturbedResult(resumed).value("resumedFromStep", 0), 0);
}

TEST(Resume, ASecondJobInTheFolderIsRefusedAndTheFirstNamed) {
  TemporaryFolder checkpoints;
  LocalRun first(SmallJobYaml(), SlowJob({Checkpoint(checkpoints, 5), "training.epochs=100000"}));
  ASSERT_TRUE(WaitForFirstStep(first, "gpu-0"));
  LocalRun second(SmallJobYaml(), SlowJob({Checkpoint(checkpoints, 5)}));
  const ProgramResult result = second.Wait(kPatience);
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_NE(result.output.find("is in use by job small (gpu-0, process " +
                               std::to_string(first.PidOf("gpu-0"))),
            std::string::npos)
      << result.output;
}

TEST(Resume, AFolderThatVanishesIsReportedAndTheJobGoesOn) {
  TemporaryFolder parent;
  const std::string folder = parent / "checkpoints";
  LocalRun run(SmallJobYaml(),
               SlowJob({"training.checkpoint={uri: 'file://" + folder + "', everySteps: 3}"}));
  ASSERT_TRUE(run.WaitForLog("gpu-0", "wrote a checkpoint", kPatience));
  std::filesystem::rename(folder, parent / "gone");
  testing::WriteFile(folder, "no folder any more");
  const nlohmann::json report = ExpectUndisturbedResult(run);
  EXPECT_NE(report.value("checkpointProblem", "").find("could not be written"), std::string::npos)
      << report;
  EXPECT_TRUE(report.contains("checkpointURI"));
}

TEST(Resume, AnotherJobsCheckpointIsRefusedWithWhatDiffers) {
  TemporaryFolder checkpoints;
  LocalRun first(SmallJobYaml(), SlowJob({Checkpoint(checkpoints, 5), "training.maxSteps=5"}));
  EXPECT_EQ(first.Wait(kPatience).exit_code, 0);
  LocalRun second(SmallJobYaml(), SlowJob({Checkpoint(checkpoints, 5), "training.seed=12"}));
  const ProgramResult result = second.Wait(kPatience);
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_NE(result.output.find("seed 11 (this job: 12)"), std::string::npos) << result.output;
}

}  // namespace
}  // namespace hetero
