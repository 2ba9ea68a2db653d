// Limits and rules of the manifest that `local` passed over without a word.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>

#include "tests/integration/local/slow_job.h"
#include "tests/integration/support/jobs.h"

namespace hetero {
namespace {

using std::chrono::seconds;
using testing::ExpectUndisturbedResult;
using testing::LocalRun;
using testing::ProgramResult;
using testing::SlowJob;
using testing::SmallJobYaml;
using testing::TemporaryFolder;
using testing::WaitForFirstStep;

constexpr char kEndless[] = "training.epochs=100000";

std::string Rule(const std::string& role, const std::string& action, int code) {
  return "roles." + role + ".failureRules=[{action: " + action +
         ", onExitCodes: {operator: In, values: [" + std::to_string(code) + "]}}]";
}

bool Says(const ProgramResult& result, const std::string& text) {
  return result.output.find(text) != std::string::npos;
}

TEST(RunPolicy, TheActiveDeadlineEndsALocalJobAsFailed) {
  TemporaryFolder checkpoints;
  LocalRun run(SmallJobYaml(),
               SlowJob({kEndless, "runPolicy.activeDeadlineSeconds=30",
                        "training.checkpoint={uri: 'file://" + checkpoints.path() + "'}"}));
  const ProgramResult result = run.Wait(seconds(150));
  EXPECT_EQ(result.exit_code, 1) << result.output;
  const std::string why =
      "runPolicy.activeDeadlineSeconds: the job has run for 30 s without finishing";
  EXPECT_TRUE(Says(result, why)) << result.output;
  const nlohmann::json report = run.report();
  EXPECT_EQ(report["state"], "Failed");
  EXPECT_NE(report["message"].get<std::string>().find(why), std::string::npos) << report;
  EXPECT_NE(run.log("gpu-0").find("wrote a checkpoint"), std::string::npos) << "an orderly end\n"
                                                                            << run.log("gpu-0");
}

// Nobody misses the trainer for a long while; the steps are missed sooner.
TEST(RunPolicy, AStallBeginsANewAttempt) {
  TemporaryFolder checkpoints;
  LocalRun run(
      SmallJobYaml(),
      SlowJob({"runPolicy.memberTimeoutSeconds=600", "runPolicy.stallTimeoutSeconds=15",
               "training.checkpoint={uri: 'file://" + checkpoints.path() + "', everySteps: 2}"}));
  ASSERT_TRUE(run.WaitForLog("gpu-0", "wrote a checkpoint", seconds(60)));
  kill(run.PidOf("gpu-1"), SIGSTOP);
  const nlohmann::json report = ExpectUndisturbedResult(run);
  EXPECT_EQ(report["attempt"], 2);
}

TEST(RunPolicy, AStallWithoutRestartsFailsTheJob) {
  LocalRun run(SmallJobYaml(),
               SlowJob({kEndless, "runPolicy.memberTimeoutSeconds=600",
                        "runPolicy.stallTimeoutSeconds=15", "runPolicy.maxRestarts=0"}));
  ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
  kill(run.PidOf("gpu-1"), SIGSTOP);
  const ProgramResult result = run.Wait(seconds(120));
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_TRUE(Says(result,
                   "runPolicy.stallTimeoutSeconds: no step for 15 s; runPolicy.maxRestarts allows "
                   "0 restarts"))
      << result.output;
  EXPECT_EQ(run.report()["state"], "Failed");
}

TEST(RunPolicy, AFailureRuleFailsTheJob) {
  LocalRun run(SmallJobYaml(), SlowJob({kEndless, Rule("cpu", "FailJob", 137)}));
  ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
  kill(run.PidOf("cpu-1"), SIGKILL);
  const ProgramResult result = run.Wait(seconds(120));
  EXPECT_EQ(result.exit_code, 1) << result.output;
  const std::string why =
      "cpu-1 failed: Error, exit code 137; failureRules[0] of role cpu says FailJob";
  EXPECT_TRUE(Says(result, why)) << result.output;
  const nlohmann::json report = run.report();
  EXPECT_EQ(report["state"], "Failed");
  EXPECT_NE(report["message"].get<std::string>().find(why), std::string::npos) << report;
}

TEST(RunPolicy, AFailureRuleLeavesAWorkerAsItIs) {
  LocalRun run(SmallJobYaml(), SlowJob({Rule("cpu", "Ignore", 137)}));
  ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
  kill(run.PidOf("cpu-1"), SIGKILL);
  const nlohmann::json report = ExpectUndisturbedResult(run);
  EXPECT_EQ(report["state"], "Succeeded");
  EXPECT_EQ(run.log("cpu-1").find("serving"), run.log("cpu-1").rfind("serving")) << "started once";
}

TEST(RunPolicy, AFailureRuleBeginsANewAttempt) {
  TemporaryFolder checkpoints;
  LocalRun run(SmallJobYaml(), SlowJob({Rule("gpu", "RestartGang", 137),
                                        "training.checkpoint={uri: 'file://" + checkpoints.path() +
                                            "', everySteps: 2}"}));
  ASSERT_TRUE(run.WaitForLog("gpu-0", "wrote a checkpoint", seconds(60)));
  kill(run.PidOf("gpu-1"), SIGKILL);
  EXPECT_EQ(ExpectUndisturbedResult(run)["attempt"], 2);
}

TEST(RunPolicy, FieldsOfAClusterAreNamedInOneLine) {
  LocalRun run(SmallJobYaml(),
               {"--set", "runPolicy.ttlSecondsAfterFinished=60", "--set", "network.tls=Disabled"});
  const ProgramResult result = run.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(Says(result,
                   "ignored on one machine: spec.runPolicy.ttlSecondsAfterFinished, "
                   "spec.network.tls\n"))
      << result.output;
}

TEST(RunPolicy, NothingIsSaidWhereNothingIsIgnored) {
  LocalRun run(SmallJobYaml());
  EXPECT_FALSE(Says(run.Wait(), "ignored"));
}

}  // namespace
}  // namespace hetero
