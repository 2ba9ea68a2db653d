// `hetero-runtime local` as its user sees it.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>

#include "base/version.h"
#include "tests/integration/support/jobs.h"
#include "tests/integration/support/program_run.h"

namespace hetero {
namespace {

using testing::LocalRun;
using testing::ProgramResult;
using testing::RunProgram;
using testing::SmallJobYaml;
using testing::TemporaryFolder;

TEST(Local, RunsAJobToItsReport) {
  LocalRun run(SmallJobYaml());
  const ProgramResult result = run.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("report.json"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("rank=1 epoch=2 step=8/8 loss="), std::string::npos)
      << result.output;
  const nlohmann::json report = run.report();
  EXPECT_EQ(report["state"], "Succeeded");
  EXPECT_EQ(report["steps"], 16);
  EXPECT_EQ(report["workers"].size(), 3u);
  for (const char* program : {"hetero", "cpu", "gpu"}) {
    EXPECT_EQ(report["versions"][program], base::FullVersion()) << program;
  }
  EXPECT_TRUE(std::filesystem::exists(run.output() + "/report.html"));
  EXPECT_FALSE(std::filesystem::exists(run.output() + "/processes.json"));
  std::cout << "startupSeconds " << report["startupSeconds"] << "\n";
}

TEST(Local, TheTrainerSaysVersionAndCommit) {
  const ProgramResult result = RunProgram("hetero-trainer", {"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output, "hetero-trainer " + base::DescribeVersion() + "\n");
}

TEST(Local, TrainsOnAFolderOfPictures) {
  TemporaryFolder folder;
  const ProgramResult made =
      RunProgram("hetero-runtime",
                 {"make-dataset", "--classes", "4", "--samples", "160", "--validation-samples",
                  "40", "--size", "24", "--seed", "3", folder / "data"});
  ASSERT_EQ(made.exit_code, 0) << made.output;
  LocalRun run(SmallJobYaml(), {"--set",
                                "dataset={uri: 'file://" + (folder / "data/train") +
                                    "', validation: {uri: 'file://" + (folder / "data/val") + "'}}",
                                "--set", "training.epochs=8"});
  const ProgramResult result = run.Wait();
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(run.report()["evaluations"].back()["samples"], 40);
  EXPECT_GT(run.report()["accuracy"].get<double>(), 0.4);  // chance is 0.25
}

TEST(Local, InputOnlyReportsTheCostOfASample) {
  LocalRun run(SmallJobYaml(), {"--input-only", "--trainer", "/does/not/exist"});
  const ProgramResult result = run.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  const nlohmann::json report = run.report();
  EXPECT_GT(report["samplesPerSecond"].get<double>(), 0);
  EXPECT_TRUE(report["cpuSecondsPerSample"].contains("cpu")) << report["cpuSecondsPerSample"];
  EXPECT_TRUE(report["cpuSecondsPerSample"].contains("gpu")) << report["cpuSecondsPerSample"];
  EXPECT_FALSE(report.contains("loss"));
}

// As when the launcher itself runs in a pod of another job.
TEST(Local, VariablesOfAnOuterJobDoNotReachItsProcesses) {
  LocalRun run(SmallJobYaml(), {"--input-only"},
               {"HETERO_ROLE=gpu", "HETERO_INDEX=7", "HETERO_TLS="});
  const ProgramResult result = run.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

TEST(Local, CtrlCStopsEverythingAndWritesTheReport) {
  LocalRun run(SmallJobYaml(), {"--set", "training.epochs=1000000"});
  const pid_t trainer = run.PidOf("gpu-0");
  ASSERT_TRUE(run.WaitForLog("gpu-0", "epoch ended"));
  const auto begin = std::chrono::steady_clock::now();
  run.program().Signal(SIGINT);
  const ProgramResult result = run.Wait(std::chrono::seconds(10));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(result.exit_code, 130) << result.output;
  EXPECT_EQ(run.report()["state"], "Stopped");
  EXPECT_GT(run.report()["steps"].get<int>(), 0);
  EXPECT_NE(kill(trainer, 0), 0) << "a trainer is left";
}

TEST(Local, CtrlCDuringTheStartWritesAReportToo) {
  LocalRun run(SmallJobYaml());
  run.PidOf("gpu-1");
  run.program().Signal(SIGINT);
  const ProgramResult result = run.Wait(std::chrono::seconds(10));
  if (result.exit_code == 0) return;  // the job was faster
  EXPECT_EQ(result.exit_code, 130) << result.output;
  EXPECT_EQ(run.report()["state"], "Stopped");
}

TEST(Local, ASecondCtrlCKills) {
  LocalRun run(SmallJobYaml(), {"--set", "training.epochs=1000000"});
  const pid_t trainer = run.PidOf("gpu-0");
  ASSERT_TRUE(run.WaitForLog("gpu-0", "generation opened"));
  // A frozen head cannot answer the first.
  kill(run.PidOf("head"), SIGSTOP);
  run.program().Signal(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  run.program().Signal(SIGINT);
  const ProgramResult result = run.Wait(std::chrono::seconds(4));
  EXPECT_EQ(result.exit_code, 130) << result.output;
  EXPECT_NE(kill(trainer, 0), 0) << "a trainer is left";
  EXPECT_EQ(run.report()["state"], "Stopped");
}

}  // namespace
}  // namespace hetero
