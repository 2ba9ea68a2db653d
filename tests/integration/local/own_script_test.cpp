// Jobs whose ranks are scripts: they end as they should, badly, never, or are killed, and what they
// started goes with them.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <string>

#include "tests/integration/local/script_run.h"

namespace hetero {
namespace {

using std::chrono::seconds;
using testing::ExpectWholeStream;
using testing::kScriptSteps;
using testing::ProcessEnds;
using testing::ProcessRuns;
using testing::ProgramResult;
using testing::ScriptRun;

// Rank 0 saves after every second step.
std::vector<std::string> Saving() {
  return {"training.checkpoint={uri: 'file:///unused', everySteps: 2}", "runPolicy.maxRestarts=10"};
}

int64_t RestartsOf(const nlohmann::json& report) { return report.value("scriptRestarts", -1); }

// As kubectl describe and the report have it.
std::string FailureOf(const ScriptRun& run) {
  return run.report().value("reason", "") + run.report().dump();
}

TEST(OwnScript, GetsTheStreamAsItIs) {
  ScriptRun run;
  ExpectWholeStream(run);
  const nlohmann::json report = run.report();
  EXPECT_EQ(report["generations"], 1);
  EXPECT_TRUE(report["faults"].empty()) << report["faults"];
  const nlohmann::json variables = nlohmann::json::parse(run.Read("environment-1.json"));
  EXPECT_EQ(variables["WORLD_SIZE"], "2");
  EXPECT_EQ(variables["GROUP_RANK"], "1");
  EXPECT_EQ(variables["MASTER_ADDR"], "127.0.0.1");
  EXPECT_FALSE(variables.contains("HETERO_HEAD_ADDRESS"));
  EXPECT_FALSE(variables.contains("HETERO_PARENT_PID"));
}

TEST(OwnScript, CrashesAndGoesOnFromItsState) {
  ScriptRun run({"--crash-at", "3", "--crash-at", "8", "--crash-at", "13"}, Saving());
  ExpectWholeStream(run);
  const nlohmann::json report = run.report();
  EXPECT_EQ(report["generations"], 4);
  EXPECT_EQ(RestartsOf(report), 3);
  EXPECT_EQ(report["attempt"], 1);
  EXPECT_NE(report["faults"].dump().find("boom at 8"), std::string::npos) << report["faults"];
  for (const auto& worker : report["workers"]) EXPECT_EQ(worker["restarts"], 0) << worker;
}

TEST(OwnScript, CrashesAndBeginsAgainWithoutAState) {
  ScriptRun run({"--crash-at", "5"}, {"runPolicy.maxRestarts=10"});
  ExpectWholeStream(run);
  EXPECT_EQ(RestartsOf(run.report()), 1);
}

// One agent, two scripts.
TEST(OwnScript, RunsOnBothRanksOfAPod) {
  ScriptRun run({"--crash-at", "5"}, {"roles.gpu.replicas=1", "roles.gpu.gpusPerReplica=2"});
  ExpectWholeStream(run);
  EXPECT_EQ(RestartsOf(run.report()), 1);
  const nlohmann::json variables = nlohmann::json::parse(run.Read("environment-1.json"));
  EXPECT_EQ(variables["LOCAL_RANK"], "1");
  EXPECT_EQ(variables["LOCAL_WORLD_SIZE"], "2");
  EXPECT_EQ(variables["GROUP_WORLD_SIZE"], "1");
}

// As long as its last words are the same and no step is done.
TEST(OwnScript, TheSameEndThreeTimesIsTheEndOfTheJob) {
  ScriptRun run({"--crash-always-at", "4"}, Saving());
  const ProgramResult result = run.Wait();
  EXPECT_EQ(result.exit_code, 1);
  const std::string failure = FailureOf(run);
  EXPECT_NE(failure.find("ValueError: boom"), std::string::npos) << failure;
  EXPECT_NE(failure.find("step 4"), std::string::npos) << failure;
  EXPECT_NE(result.output.find("ValueError: boom"), std::string::npos) << result.output;
}

TEST(OwnScript, CrashesOftenerThanItMay) {
  ScriptRun run(
      {"--crash-at", "3", "--crash-at", "5", "--crash-at", "7"},
      {"training.checkpoint={uri: 'file:///unused', everySteps: 2}", "runPolicy.maxRestarts=2"});
  EXPECT_EQ(run.Wait().exit_code, 1);
  const std::string failure = FailureOf(run);
  EXPECT_NE(failure.find("boom at 7"), std::string::npos) << failure;
}

TEST(OwnScript, IsKilled) {
  ScriptRun run({"--pace", "0.1"}, Saving());
  ASSERT_TRUE(run.WaitForFile("journal-0", "4 "));
  kill(run.local().PidOf("script-1"), SIGKILL);
  ExpectWholeStream(run);
  EXPECT_EQ(RestartsOf(run.report()), 1);
  EXPECT_NE(run.report()["faults"].dump().find("SIGKILL"), std::string::npos);
}

TEST(OwnScript, ItsAgentIsKilled) {
  ScriptRun run({"--pace", "0.1", "--leave-children"}, Saving());
  ASSERT_TRUE(run.WaitForFile("journal-0", "4 "));
  const pid_t script = run.local().PidOf("script-1");
  const pid_t child = std::stoi(run.Read("child-1"));
  kill(run.local().PidOf("gpu-1"), SIGKILL);
  EXPECT_TRUE(ProcessEnds(script));
  EXPECT_TRUE(ProcessEnds(child));
  ExpectWholeStream(run);
  EXPECT_EQ(RestartsOf(run.report()), 0) << "the agent was to blame";
}

pid_t ParentOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  return std::stoi(line.substr(line.rfind(") ") + 4));
}

// The process between the agent and its script: the agent goes with it, and is replaced.
TEST(OwnScript, ItsKeeperIsKilled) {
  ScriptRun run({"--pace", "0.1", "--leave-children"}, Saving());
  ASSERT_TRUE(run.WaitForFile("journal-0", "4 "));
  const pid_t script = run.local().PidOf("script-1");
  const pid_t child = std::stoi(run.Read("child-1"));
  kill(ParentOf(script), SIGKILL);
  EXPECT_TRUE(ProcessEnds(script));
  EXPECT_TRUE(ProcessEnds(child));
  ExpectWholeStream(run);
}

TEST(OwnScript, ACpuWorkerIsKilled) {
  ScriptRun run({"--pace", "0.1"}, Saving());
  ASSERT_TRUE(run.WaitForFile("journal-0", "4 "));
  kill(run.local().PidOf("cpu-0"), SIGKILL);
  ExpectWholeStream(run);
  EXPECT_EQ(run.report()["generations"], 1);
  EXPECT_EQ(RestartsOf(run.report()), 0);
}

TEST(OwnScript, TheHeadIsKilled) {
  ScriptRun run({"--pace", "0.2"}, Saving());
  ASSERT_TRUE(run.WaitForFile("journal-0", "4 "));
  kill(run.local().PidOf("head"), SIGKILL);
  ExpectWholeStream(run);
  EXPECT_EQ(run.report()["generations"], 1);
  EXPECT_EQ(RestartsOf(run.report()), 0);
}

// Both scripts save after the same step, and one pod alone leaves.
TEST(OwnScript, OneRankIsAskedToLeave) {
  ScriptRun run({"--pace", "0.2"}, {"training.checkpoint={uri: 'file:///unused', everySteps: 1000}",
                                    "runPolicy.maxRestarts=0"});
  ASSERT_TRUE(run.WaitForFile("journal-0", "3 "));
  kill(run.local().PidOf("gpu-1"), SIGTERM);
  ExpectWholeStream(run);
  EXPECT_EQ(run.report()["generations"], 2);
  EXPECT_EQ(RestartsOf(run.report()), 0);
  EXPECT_NE(run.local().log("script-0").find("saved at step"), std::string::npos);
}

// What was saved is not done again.
TEST(OwnScript, IsStoppedAndGoesOnInTheNextRun) {
  ScriptRun run({"--pace", "0.2"},
                {"training.checkpoint={uri: 'file:///unused', everySteps: 1000}"});
  ASSERT_TRUE(run.WaitForFile("journal-1", "3 "));
  run.local().program().Signal(SIGINT);
  const ProgramResult result = run.Wait();
  EXPECT_EQ(result.exit_code, 130) << result.output;
  EXPECT_EQ(run.report()["state"], "Stopped");
  const nlohmann::json state = nlohmann::json::parse(run.Read("state.json"));
  EXPECT_EQ(state["step"], run.Samples().rbegin()->first);
  EXPECT_TRUE(state["digest"].is_string()) << state;
}

TEST(OwnScript, IsStoppedWithoutAPlaceToSave) {
  ScriptRun run({"--pace", "0.2", "--leave-children", "--ignore-sigterm"});
  ASSERT_TRUE(run.WaitForFile("journal-1", "2 "));
  const pid_t child = std::stoi(run.Read("child-0"));
  const pid_t script = run.local().PidOf("script-0");
  const auto began = std::chrono::steady_clock::now();
  run.local().program().Signal(SIGINT);
  EXPECT_EQ(run.Wait().exit_code, 130);
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(10));
  EXPECT_TRUE(ProcessEnds(child));
  EXPECT_TRUE(ProcessEnds(script));
}

TEST(OwnScript, NothingOutlivesTheLauncher) {
  ScriptRun run({"--pace", "0.2", "--leave-children", "--ignore-sigterm"});
  ASSERT_TRUE(run.WaitForFile("journal-1", "2 "));
  std::vector<pid_t> processes = {std::stoi(run.Read("child-0")), std::stoi(run.Read("child-1"))};
  for (const char* name : {"script-0", "script-1", "gpu-0", "gpu-1"}) {
    processes.push_back(run.local().PidOf(name));
  }
  run.local().program().Signal(SIGKILL);
  for (const pid_t pid : processes) EXPECT_TRUE(ProcessEnds(pid)) << pid;
}

TEST(OwnScript, LeavesChildrenBehind) {
  ScriptRun run({"--leave-children"});
  ExpectWholeStream(run);
  for (const char* name : {"child-0", "child-1"}) {
    EXPECT_FALSE(ProcessRuns(std::stoi(run.Read(name)))) << name;
  }
}

// The other script has crashed, and this one hears nothing: it is killed after the grace.
TEST(OwnScript, HangsAndIgnoresSigtermWhenAnotherCrashes) {
  ScriptRun run({"--wait-at", "7", "--crash-at", "7", "--ignore-sigterm"}, Saving());
  ExpectWholeStream(run);
  EXPECT_EQ(RestartsOf(run.report()), 1);
}

TEST(OwnScript, PrintsWithoutEnd) {
  ScriptRun run({"--print-mebibytes", "80", "--rank", "1"});
  ExpectWholeStream(run);
  const std::string log = run.local().log("script-1");
  EXPECT_LT(log.size(), size_t{65} << 20);
}

TEST(OwnScript, EndsEarly) {
  ScriptRun run({"--end-at", "5"});
  EXPECT_EQ(run.Wait().exit_code, 0);
  EXPECT_EQ(run.report()["state"], "Succeeded");
  EXPECT_EQ(run.report()["steps"], 5);
}

TEST(OwnScript, NeverAsksForABatch) {
  ScriptRun run({"--never-ask"});
  EXPECT_EQ(run.Wait().exit_code, 1);
  const std::string failure = FailureOf(run);
  EXPECT_NE(failure.find("asked for no batch"), std::string::npos) << failure;
}

TEST(OwnScript, OpensNoStream) {
  ScriptRun run({"--no-stream"});
  EXPECT_EQ(run.Wait().exit_code, 1);
  const std::string failure = FailureOf(run);
  EXPECT_NE(failure.find("hetero.Stream()"), std::string::npos) << failure;
}

TEST(OwnScript, LoadsDifferentStatesOnTwoRanks) {
  ScriptRun run({"--different-states", "--crash-at", "5"}, Saving());
  EXPECT_EQ(run.Wait().exit_code, 1);
  const std::string failure = FailureOf(run);
  EXPECT_NE(failure.find("do not begin at the same step"), std::string::npos) << failure;
}

// The program went while the job was on its way; the launcher looks for it before.
TEST(OwnScript, CannotBeStarted) {
  testing::TemporaryFolder folder;
  const std::string program = folder / "program";
  testing::WriteFile(program, "#!/no/such/interpreter\n");
  chmod(program.c_str(), 0755);
  ScriptRun run({}, {}, {program});
  const ProgramResult result = run.Wait();
  EXPECT_EQ(result.exit_code, 1);
  const std::string failure = FailureOf(run);
  EXPECT_NE(failure.find("did not start"), std::string::npos) << failure;
  EXPECT_NE(failure.find("with its interpreter"), std::string::npos) << failure;
}

// A port is picked, not held.
TEST(OwnScript, FindsItsPortTakenAndGetsAnother) {
  ScriptRun run({"--take-port"}, Saving());
  ExpectWholeStream(run);
  EXPECT_EQ(RestartsOf(run.report()), 1);
  EXPECT_NE(run.report()["faults"].dump().find("in use"), std::string::npos);
}

}  // namespace
}  // namespace hetero
