// `hetero-runtime local` as its user sees it.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>

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

TEST(Local, HowMuchMayWaitAtARankChangesNothingOfTheStream) {
  LocalRun usual(SmallJobYaml());
  ASSERT_EQ(usual.Wait().exit_code, 0);
  for (const char* size : {"1Mi", "3Mi"}) {
    LocalRun run(SmallJobYaml(), {"--set", std::string("training.inputWindow=") + size});
    const ProgramResult result = run.Wait();
    ASSERT_EQ(result.exit_code, 0) << result.output;
    const nlohmann::json report = run.report();
    EXPECT_EQ(report["streamDigest"], usual.report()["streamDigest"]);
    EXPECT_EQ(report["loss"], usual.report()["loss"]);
    const int64_t bytes = (size[0] - '0') << 20;
    for (const nlohmann::json& worker : report["workers"]) {
      if (worker["role"] != "gpu") {
        EXPECT_FALSE(worker.contains("inputWindowBytes")) << worker;
        continue;
      }
      EXPECT_EQ(worker["inputWindowBytes"], bytes) << worker;
      EXPECT_EQ(worker["inputWindowBatches"], bytes / (32 * 12 * 12 * 3)) << worker;
    }
  }
}

// What processes see of themselves against what the kernel says they used, and lives against the
// clock on the wall.
TEST(Local, TheReportSaysWhatWasUsedAndWhereBatchesWere) {
  LocalRun run(SmallJobYaml());
  const ProgramResult result = run.Wait();
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const nlohmann::json report = run.report();
  std::map<std::string, double> seen;
  for (const nlohmann::json& one : report["resources"]) {
    double line = 0;
    for (const auto& [group, seconds] : one["cpuSeconds"].items()) {
      seen[one["member"]] += seconds.get<double>();
    }
    for (const nlohmann::json& point : one["timeLine"]) {
      for (const auto& [group, seconds] : point["cpuSeconds"].items())
        line += seconds.get<double>();
      EXPECT_LE(point["seconds"], report["wallSeconds"]);
    }
    EXPECT_NEAR(line, seen[one["member"]], 0.001 + 0.001 * line) << one;
  }
  ASSERT_EQ(seen.size(), report["workers"].size()) << report["resources"];
  for (const nlohmann::json& worker : report["workers"]) {
    const double used = worker["cpuSeconds"];
    EXPECT_NEAR(seen[worker["name"]], used, 0.1 * used) << worker;
  }
  double medians = 0;
  for (const nlohmann::json& span : report["batchLives"]) {
    const bool of_steps = span["span"] == "wholeStep";
    // Two ranks: the first ten of 16 steps.
    EXPECT_EQ(span["count"], of_steps ? 32 : 20) << span;
    for (const char* share : {"p50", "p90", "p95", "p99"}) {
      EXPECT_GE(span[share], 0) << span;
      EXPECT_LE(span[share], report["wallSeconds"]) << span;
    }
    if (!of_steps && span["span"] != "read") medians += span["p50"].get<double>();
  }
  EXPECT_EQ(report["batchLives"].size(), 8u);
  EXPECT_GT(medians, 0);
  EXPECT_LE(medians, report["wallSeconds"]);
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
