// Heads that freeze: nobody but the launcher can tell, and nobody else may act.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/integration/local/slow_job.h"
#include "tests/integration/support/jobs.h"

namespace hetero {
namespace {

using std::chrono::seconds;
using testing::ExpectUndisturbedResult;
using testing::LocalRun;
using testing::NumbersInLog;
using testing::ProgramResult;
using testing::SlowJob;
using testing::SmallJobYaml;
using testing::TemporaryFolder;
using testing::WaitForFirstStep;

constexpr char kTrainers[][6] = {"gpu-0", "gpu-1"};

// On a busy machine whoever lives may be silent for seconds.
std::vector<std::string> Job(const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings = {"runPolicy.memberTimeoutSeconds=6"};
  settings.insert(settings.end(), more.begin(), more.end());
  return SlowJob(settings);
}

// The job outlasts the absence of its head or launcher.
constexpr char kLong[] =
    "pipeline=[{op: Delay, milliseconds: 50}, {op: HorizontalFlip}, {op: Normalize}]";

// It has said at least one word before it freezes: the launcher shows the status.
void Freeze(LocalRun& run) { ASSERT_EQ(kill(run.PidOf("head"), SIGSTOP), 0); }

void ExpectReplacedAtNoCost(LocalRun& run) {
  const nlohmann::json report = ExpectUndisturbedResult(run);
  EXPECT_EQ(report["generations"], 1) << "training never stopped";
  for (const char* name : kTrainers) {
    EXPECT_EQ(NumbersInLog(run.log(name), "generation opened", "generation").size(), 1u);
    EXPECT_EQ(run.log(name).find("generation broke"), std::string::npos) << run.log(name);
  }
}

TEST(FrozenHead, BeforeTheFirstStepItIsReplaced) {
  LocalRun run(SmallJobYaml(), Job());
  ASSERT_TRUE(run.WaitForLog("head", "joined", seconds(60)));
  Freeze(run);
  const nlohmann::json report = ExpectUndisturbedResult(run);
  EXPECT_EQ(report["state"], "Succeeded");
}

TEST(FrozenHead, InTheMiddleItIsReplacedAndNoStepIsLost) {
  LocalRun run(SmallJobYaml(), Job({kLong}));
  ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
  Freeze(run);
  ExpectReplacedAtNoCost(run);
}

// The trainers are done and the head has heard of none of their last words: the job waited for
// ever.
TEST(FrozenHead, AfterTheLastStepItIsReplacedAndTheResultIsThere) {
  LocalRun run(SmallJobYaml(), Job({"runPolicy.memberTimeoutSeconds=40"}));
  ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
  Freeze(run);
  for (const char* name : kTrainers) {
    ASSERT_TRUE(run.WaitForLog(name, "the head did not hear the end", seconds(180)));
  }
  ExpectReplacedAtNoCost(run);
}

TEST(FrozenHead, OneThatGoesOnInTimeIsNotReplaced) {
  LocalRun run(SmallJobYaml(), Job({"runPolicy.memberTimeoutSeconds=20"}));
  ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
  const pid_t head = run.PidOf("head");
  Freeze(run);
  std::this_thread::sleep_for(seconds(3));
  kill(head, SIGCONT);
  EXPECT_EQ(run.PidOf("head"), head);
  ExpectReplacedAtNoCost(run);
}

TEST(FrozenHead, ALauncherThatWasStoppedItselfBlamesNoHead) {
  LocalRun run(SmallJobYaml(), Job({kLong}));
  ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
  const pid_t head = run.PidOf("head");
  run.program().Signal(SIGSTOP);
  std::this_thread::sleep_for(seconds(9));
  run.program().Signal(SIGCONT);
  std::this_thread::sleep_for(seconds(1));
  EXPECT_EQ(run.PidOf("head"), head);
  ExpectReplacedAtNoCost(run);
}

TEST(FrozenHead, WithoutRestartsItEndsTheJobWithAReport) {
  LocalRun run(SmallJobYaml(), Job({"training.epochs=100000", "runPolicy.maxRestarts=0"}));
  ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
  Freeze(run);
  const ProgramResult result = run.Wait(seconds(120));
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_NE(result.output.find("head hangs: its process lives"), std::string::npos)
      << result.output;
  EXPECT_EQ(run.report()["state"], "Failed");
}

// The head passes the wish on to nobody, but every rank hears of it.
TEST(FrozenHead, CtrlCStillLeavesACheckpoint) {
  TemporaryFolder checkpoints;
  LocalRun run(SmallJobYaml(),
               Job({"training.epochs=100000", "runPolicy.memberTimeoutSeconds=60",
                    "training.checkpoint={uri: 'file://" + checkpoints.path() + "'}"}));
  ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
  Freeze(run);
  run.program().Signal(SIGINT);
  const ProgramResult result = run.Wait(seconds(120));
  EXPECT_EQ(result.exit_code, 130) << result.output;
  EXPECT_EQ(run.report()["state"], "Stopped");
  EXPECT_NE(run.log("gpu-0").find("wrote a checkpoint"), std::string::npos) << run.log("gpu-0");
}

}  // namespace
}  // namespace hetero
