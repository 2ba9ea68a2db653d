// Processes of a local job that die or freeze in the middle.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "tests/integration/support/jobs.h"
#include "tests/integration/support/program_run.h"

namespace hetero {
namespace {

using testing::LocalRun;
using testing::ProgramResult;
using testing::SmallJobYaml;

// Slow enough to be struck in the middle, without needing cores: 2 ms a sample.
const std::vector<std::string> kSlow = {
    "--set", "roles.cpu.replicas=2",
    "--set", "dataset.samples=2048",
    "--set", "pipeline=[{op: Delay, milliseconds: 2}, {op: HorizontalFlip}, {op: Normalize}]"};

// Of the undisturbed job; computed once.
const std::string& UndisturbedDigest() {
  static const std::string digest = [] {
    LocalRun run(SmallJobYaml(), kSlow);
    const ProgramResult result = run.Wait();
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return run.report().value("streamDigest", "");
  }();
  return digest;
}

TEST(Fault, AKilledCpuWorkerCostsNothingOfTheStream) {
  LocalRun run(SmallJobYaml(), kSlow);
  ASSERT_TRUE(run.WaitForLog("gpu-0", "generation opened"));
  const pid_t worker = run.PidOf("cpu-0");
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  kill(worker, SIGKILL);
  const ProgramResult result = run.Wait();
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const nlohmann::json report = run.report();
  EXPECT_EQ(report["streamDigest"], UndisturbedDigest());
  EXPECT_GT(report["ticketsReissued"].get<int>(), 0);
  EXPECT_EQ(report["samplesConsumed"], 2 * 2048);
  EXPECT_GE(report["faults"].size(), 1u);
  EXPECT_NE(result.output.find("cpu-0 ended: killed by SIGKILL"), std::string::npos)
      << result.output;
}

TEST(Fault, AFrozenCpuWorkerCostsNothingOfTheStream) {
  LocalRun run(SmallJobYaml(), kSlow);
  ASSERT_TRUE(run.WaitForLog("gpu-0", "generation opened"));
  const pid_t worker = run.PidOf("cpu-0");
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  kill(worker, SIGSTOP);
  const ProgramResult result = run.Wait();
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(run.report()["streamDigest"], UndisturbedDigest());
  EXPECT_GT(run.report()["ticketsReissued"].get<int>(), 0);
}

TEST(Fault, AllCpuWorkersGoneLeavesTheTrainersOwnCores) {
  std::vector<std::string> arguments = kSlow;
  arguments.insert(arguments.end(), {"--set", "runPolicy.maxRestarts=0"});
  LocalRun run(SmallJobYaml(), arguments);
  ASSERT_TRUE(run.WaitForLog("gpu-0", "generation opened"));
  for (const char* name : {"cpu-0", "cpu-1"}) kill(run.PidOf(name), SIGKILL);
  const ProgramResult result = run.Wait();
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(run.report()["streamDigest"], UndisturbedDigest());
}

TEST(Fault, AKilledTrainerWithoutRestartsFailsTheJobByName) {
  LocalRun run(SmallJobYaml(),
               {"--set", "training.epochs=1000000", "--set", "runPolicy.maxRestarts=0"});
  ASSERT_TRUE(run.WaitForLog("gpu-0", "epoch ended"));
  kill(run.PidOf("gpu-1"), SIGKILL);
  const ProgramResult result = run.Wait();
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_NE(result.output.find("gpu-1"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("SIGKILL"), std::string::npos) << result.output;
  EXPECT_EQ(run.report()["state"], "Failed");
}

TEST(Fault, AKilledHeadWithoutRestartsEndsTheJobWithAReport) {
  LocalRun run(SmallJobYaml(),
               {"--set", "training.epochs=1000000", "--set", "runPolicy.maxRestarts=0"});
  ASSERT_TRUE(run.WaitForLog("gpu-0", "epoch ended"));
  const pid_t trainer = run.PidOf("gpu-0");
  std::this_thread::sleep_for(std::chrono::seconds(2));  // it writes its history now and then
  kill(run.PidOf("head"), SIGKILL);
  const ProgramResult result = run.Wait(std::chrono::seconds(20));
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_NE(result.output.find("the head ended: killed by SIGKILL"), std::string::npos)
      << result.output;
  EXPECT_EQ(run.report()["state"], "Failed");
  EXPECT_EQ(run.report()["attempts"].size(), 1u);
  EXPECT_EQ(run.report()["workers"].size(), 3u) << "as the head had last written it down";
  EXPECT_NE(kill(trainer, 0), 0) << "a trainer is left";
}

// The job would wait for it.
TEST(Fault, AProcessThatCannotBeStartedAgainFailsTheJob) {
  for (const char* scope : {"Pod", "Gang"}) {
    LocalRun run(SmallJobYaml(), {"--set", "training.epochs=1000000", "--set",
                                  std::string("roles.gpu.restartScope=") + scope});
    ASSERT_TRUE(run.WaitForLog("gpu-0", "epoch ended"));
    const pid_t trainer = run.PidOf("gpu-1");
    std::filesystem::remove_all(run.output() + "/logs");
    kill(trainer, SIGKILL);
    const ProgramResult result = run.Wait(std::chrono::seconds(60));
    EXPECT_EQ(result.exit_code, 1) << scope << ": " << result.output;
    EXPECT_NE(result.output.find(".log: No such file or directory"), std::string::npos)
        << result.output;
    EXPECT_EQ(run.report()["state"], "Failed");
  }
}

// Trainers do its work.
TEST(Fault, ACpuWorkerThatCannotBeStartedAgainCostsNoJob) {
  LocalRun run(SmallJobYaml(), kSlow);
  ASSERT_TRUE(run.WaitForLog("gpu-0", "generation opened"));
  const pid_t worker = run.PidOf("cpu-0");
  std::filesystem::remove_all(run.output() + "/logs");
  kill(worker, SIGKILL);
  const ProgramResult result = run.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("cpu-0.log: No such file or directory"), std::string::npos)
      << result.output;
  EXPECT_EQ(run.report()["streamDigest"], UndisturbedDigest());
}

// As Perl's and PHP's daemons pass it on: the kernel would end children without a word to anybody.
TEST(Fault, AParentThatIgnoresItsChildrenIsNotHeeded) {
  struct Restore {
    ~Restore() { signal(SIGCHLD, SIG_DFL); }
  } restore;
  signal(SIGCHLD, SIG_IGN);
  LocalRun run(SmallJobYaml(), {"--set", "training.maxSteps=1"});
  signal(SIGCHLD, SIG_DFL);
  const ProgramResult result = run.Wait(std::chrono::seconds(60));
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

TEST(Fault, AKilledLauncherLeavesNoProcess) {
  LocalRun run(SmallJobYaml(), {"--set", "training.epochs=1000000"});
  ASSERT_TRUE(run.WaitForLog("gpu-0", "generation opened"));
  std::vector<pid_t> pids;
  for (const char* name : {"head", "cpu-0", "gpu-0", "gpu-1"}) pids.push_back(run.PidOf(name));
  run.program().Signal(SIGKILL);
  run.Wait(std::chrono::seconds(5));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  for (const pid_t pid : pids) {
    while (kill(pid, 0) == 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_NE(kill(pid, 0), 0) << pid << " is left";
  }
}

}  // namespace
}  // namespace hetero
