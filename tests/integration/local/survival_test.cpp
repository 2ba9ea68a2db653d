// Trainers and heads that die or freeze: the others go on in place.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
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
using Clock = std::chrono::steady_clock;

// Waits until another process runs under the name; -1 and a failed test otherwise.
pid_t WaitForReplacement(LocalRun& run, const std::string& name, pid_t before) {
  const auto end = Clock::now() + std::chrono::seconds(60);
  while (Clock::now() < end && run.program().running()) {
    const pid_t now = run.PidOf(name);
    if (now != before) return now;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ADD_FAILURE() << name << " was not replaced";
  return -1;
}

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A process that was not replaced has opened its log once.
int Starts(const LocalRun& run, const std::string& name) {
  return static_cast<int>(NumbersInLog(run.log(name), "generation opened", "generation").size());
}

// Of the second generation: the step after the last one that any survivor had done, and none before
// it. A survivor that was behind the others when the first broke may have done no step of it.
void ExpectNoStepRedone(const LocalRun& run, const std::vector<std::string>& survivors) {
  int done = -1;
  int next = 1 << 30;
  for (const std::string& name : survivors) {
    for (const int step : NumbersInLog(run.log(name), "generation broke", "step")) {
      done = std::max(done, step);
    }
    const char first[] = "first step of the generation";
    const std::vector<int> generations = NumbersInLog(run.log(name), first, "generation");
    ASSERT_FALSE(generations.empty()) << run.log(name);
    ASSERT_EQ(generations.back(), 2) << run.log(name);
    next = std::min(next, NumbersInLog(run.log(name), first, "step").back());
  }
  EXPECT_EQ(next, done + 1);
}

std::vector<std::string> Trainers(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("gpu-" + std::to_string(i));
  return names;
}

// How many faults of the report are told with `what`.
int FaultsWith(const nlohmann::json& report, const std::string& what) {
  return static_cast<int>(std::count_if(
      report["faults"].begin(), report["faults"].end(),
      [&](const auto& fault) { return fault.value("what", "").find(what) != std::string::npos; }));
}

// No head that was replaced has taken any of it away.
void ExpectWholeHistory(const nlohmann::json& report) {
  EXPECT_GT(report.value("startupSeconds", -1.0), 0) << report;
  // In both parts: the first step, which takes a while on a busy machine, and what the trainers did
  // while there was no head that could hear of it.
  double overlap = 5;
  for (const auto& fault : report["faults"]) overlap += fault.value("recoverySeconds", 0.0);
  EXPECT_GE(report.value("wallSeconds", -1.0),
            report.value("startupSeconds", 0.0) + report.value("trainSeconds", 0.0) - overlap)
      << report;
  EXPECT_GE(report.value("wallSeconds", -1.0), report.value("startupSeconds", 0.0)) << report;
  EXPECT_GE(report.value("wallSeconds", -1.0), report.value("trainSeconds", 0.0)) << report;
  for (const auto& fault : report["faults"]) {
    EXPECT_GE(fault.value("recoverySeconds", 0.0), 0) << fault;
  }
}

void StrikeOne(const std::string& victim, int ranks, int signal) {
  const TemporaryFolder temporary;
  LocalRun run(SmallJobYaml(),
               SlowJob({"roles.gpu.replicas=" + std::to_string(ranks),
                        "training.batchSizePerWorker=" + std::to_string(64 / ranks)}),
               {"TMPDIR=" + temporary.path()});
  std::vector<std::string> survivors = Trainers(ranks);
  std::erase(survivors, victim);
  ASSERT_TRUE(WaitForFirstStep(run, survivors.front()));
  const pid_t pid = run.PidOf(victim);
  const auto struck = Clock::now();
  kill(pid, signal);
  WaitForReplacement(run, victim, pid);
  const auto replaced = Clock::now();
  EXPECT_TRUE(WaitForFirstStep(run, survivors.front(), 2));
  std::cout << victim << " of " << ranks << (signal == SIGKILL ? " killed" : " frozen")
            << ": next step " << SecondsSince(replaced) << " s after its replacement started, "
            << SecondsSince(struck) << " s after the strike\n";
  const nlohmann::json report = ExpectUndisturbedResult(run);
  EXPECT_GE(report.value("generations", 0), 2);
  EXPECT_GE(report["faults"].size(), 1u);
  for (const std::string& name : survivors) EXPECT_EQ(Starts(run, name), 1) << run.log(name);
  if (report.value("generations", 0) == 2) ExpectNoStepRedone(run, survivors);
  EXPECT_TRUE(std::filesystem::is_empty(temporary.path())) << "what the victim left there";
}

TEST(Survival, ATrainerOfTwoIsKilled) { StrikeOne("gpu-1", 2, SIGKILL); }
TEST(Survival, TheFirstTrainerOfTwoIsKilled) { StrikeOne("gpu-0", 2, SIGKILL); }
TEST(Survival, ATrainerOfFourIsKilled) { StrikeOne("gpu-2", 4, SIGKILL); }
TEST(Survival, TheFirstTrainerOfFourIsKilled) { StrikeOne("gpu-0", 4, SIGKILL); }
TEST(Survival, ATrainerFreezes) { StrikeOne("gpu-1", 2, SIGSTOP); }

// SIGTERM to one trainer ended the job, where SIGKILL cost one process.
void AskOneToLeave(const std::string& leaver, int ranks) {
  TemporaryFolder checkpoints;
  LocalRun run(SmallJobYaml(), SlowJob({"roles.gpu.replicas=" + std::to_string(ranks),
                                        "training.batchSizePerWorker=" + std::to_string(64 / ranks),
                                        "training.checkpoint={uri: 'file://" + checkpoints.path() +
                                            "', everySteps: 1000}",
                                        "runPolicy.maxRestarts=0"}));
  std::vector<std::string> others = Trainers(ranks);
  std::erase(others, leaver);
  ASSERT_TRUE(WaitForFirstStep(run, others.front()));
  kill(run.PidOf(leaver), SIGTERM);
  const nlohmann::json report = ExpectUndisturbedResult(run);
  EXPECT_GE(report.value("generations", 0), 2);
  EXPECT_EQ(report["attempt"], 1);
  for (const std::string& name : others) EXPECT_EQ(Starts(run, name), 1) << run.log(name);
  const std::vector<int> written =
      NumbersInLog(run.log(others.front()), "wrote a checkpoint", "step");
  ASSERT_FALSE(written.empty()) << run.log(others.front());
  EXPECT_LT(written.front(), testing::kSlowJobSteps) << "when the rank left";
}

TEST(Survival, APoliteEndCostMoreThanAKill) { AskOneToLeave("gpu-1", 2); }
TEST(Survival, TheFirstTrainerIsAskedToLeave) { AskOneToLeave("gpu-0", 2); }
TEST(Survival, ATrainerOfFourIsAskedToLeave) { AskOneToLeave("gpu-2", 4); }

// A node with two of three ranks is drained. Who stays has the state, leaves a checkpoint of the
// step after which they go, and keeps its process.
void DrainTwoOfThree(const std::vector<std::string>& leavers, const std::string& stays) {
  TemporaryFolder checkpoints;
  LocalRun run(SmallJobYaml(), SlowJob({"roles.gpu.replicas=3", "training.batchSizePerWorker=16",
                                        "training.checkpoint={uri: 'file://" + checkpoints.path() +
                                            "', everySteps: 1000}",
                                        "runPolicy.maxRestarts=0"}));
  ASSERT_TRUE(WaitForFirstStep(run, stays));
  for (const std::string& name : leavers) kill(run.PidOf(name), SIGTERM);
  const ProgramResult result = run.Wait(std::chrono::seconds(120));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  const nlohmann::json report = run.report();
  EXPECT_EQ(report["state"], "Succeeded");
  EXPECT_EQ(report["attempt"], 1);
  EXPECT_GE(report.value("generations", 0), 2);
  EXPECT_EQ(Starts(run, stays), 1) << run.log(stays);
  const std::vector<int> written = NumbersInLog(run.log(stays), "wrote a checkpoint", "step");
  ASSERT_FALSE(written.empty()) << run.log(stays);
  EXPECT_LT(written.front(), report.value("steps", 0)) << "when the first left";
  for (const std::string& name : leavers) {
    EXPECT_GE(FaultsWith(report, name + " left, as it was asked to"), 1) << report["faults"];
  }
  for (const nlohmann::json& worker : report["workers"]) {
    const std::string name = worker["name"];
    const bool left = std::find(leavers.begin(), leavers.end(), name) != leavers.end();
    if (worker["role"] == "gpu") {
      EXPECT_EQ(worker["restarts"], left ? 1 : 0) << name;
    }
  }
  // The same job, undisturbed.
  static const nlohmann::json undisturbed = [] {
    LocalRun calm(SmallJobYaml(),
                  SlowJob({"roles.gpu.replicas=3", "training.batchSizePerWorker=16"}));
    EXPECT_EQ(calm.Wait(std::chrono::seconds(120)).exit_code, 0);
    return calm.report();
  }();
  for (const char* field : {"streamDigest", "steps", "samplesConsumed"}) {
    EXPECT_EQ(report[field], undisturbed[field]) << field;
  }
}

TEST(Survival, TheLastTwoTrainersOfThreeAreAskedToLeave) {
  DrainTwoOfThree({"gpu-1", "gpu-2"}, "gpu-0");
}
TEST(Survival, TheFirstTwoTrainersOfThreeAreAskedToLeave) {
  DrainTwoOfThree({"gpu-0", "gpu-1"}, "gpu-2");
}

TEST(Survival, TwoTrainersOfFourAreAskedToLeave) {
  LocalRun run(SmallJobYaml(), SlowJob({"roles.gpu.replicas=4", "training.batchSizePerWorker=16",
                                        "runPolicy.maxRestarts=0"}));
  ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
  kill(run.PidOf("gpu-0"), SIGTERM);
  kill(run.PidOf("gpu-3"), SIGTERM);
  ExpectUndisturbedResult(run);
  EXPECT_EQ(Starts(run, "gpu-1"), 1);
  EXPECT_EQ(Starts(run, "gpu-2"), 1);
}

TEST(Survival, TwoTrainersOfFourAreKilledOneAfterTheOther) {
  LocalRun run(SmallJobYaml(), SlowJob({"roles.gpu.replicas=4", "training.batchSizePerWorker=16"}));
  ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
  kill(run.PidOf("gpu-1"), SIGKILL);
  kill(run.PidOf("gpu-3"), SIGKILL);
  ExpectUndisturbedResult(run);
  EXPECT_EQ(Starts(run, "gpu-0"), 1);
  EXPECT_EQ(Starts(run, "gpu-2"), 1);
}

// Whoever takes the place of the dead dies while the next group forms.
TEST(Survival, TheReplacementIsKilledToo) {
  LocalRun run(SmallJobYaml(), SlowJob());
  ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
  const pid_t first = run.PidOf("gpu-1");
  kill(first, SIGKILL);
  const pid_t second = WaitForReplacement(run, "gpu-1", first);
  run.WaitForLog("head", "generation 2 opens", std::chrono::seconds(60));
  kill(second, SIGKILL);
  ExpectUndisturbedResult(run);
  EXPECT_EQ(Starts(run, "gpu-0"), 1);
}

TEST(Survival, AllTrainersAreKilledAndGoOnFromTheCheckpoint) {
  TemporaryFolder checkpoints;
  LocalRun run(SmallJobYaml(), SlowJob({"training.checkpoint={uri: 'file://" + checkpoints.path() +
                                        "', everySteps: 2}"}));
  ASSERT_TRUE(run.WaitForLog("gpu-0", "wrote a checkpoint", std::chrono::seconds(60)));
  for (const std::string& name : Trainers(2)) kill(run.PidOf(name), SIGKILL);
  const nlohmann::json report = ExpectUndisturbedResult(run);
  EXPECT_GT(report.value("resumedFromStep", 0), 0);
}

TEST(Survival, AKilledHeadCostsNoStep) {
  LocalRun run(SmallJobYaml(), SlowJob());
  ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
  const pid_t head = run.PidOf("head");
  kill(head, SIGKILL);
  WaitForReplacement(run, "head", head);
  const auto replaced = Clock::now();
  EXPECT_TRUE(run.WaitForLog("head", "generation 1 goes on", std::chrono::seconds(60)));
  std::cout << "head killed: takes over " << SecondsSince(replaced)
            << " s after it started again\n";
  const nlohmann::json report = ExpectUndisturbedResult(run);
  EXPECT_EQ(report["generations"], 1);
  EXPECT_EQ(FaultsWith(report, "the head was lost; replaced by a new process"), 1) << report;
  EXPECT_EQ(report["faults"].size(), 1u) << report["faults"];
  EXPECT_EQ(report["lossCurve"].size(), static_cast<size_t>(testing::kSlowJobSteps));
  ExpectWholeHistory(report);
  for (const std::string& name : Trainers(2)) {
    EXPECT_EQ(Starts(run, name), 1);
    EXPECT_EQ(run.log(name).find("generation broke"), std::string::npos) << run.log(name);
  }
}

// The head hears no last word, the trainers leave, and the next head knows the result from what
// they left behind.
TEST(Survival, AHeadThatIsKilledWhenAllHaveLeftCostsNoResult) {
  // The launcher must be more patient with the frozen head than the trainers, or it replaces it
  // first.
  LocalRun run(SmallJobYaml(), SlowJob({"runPolicy.memberTimeoutSeconds=60"}));
  ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
  const pid_t head = run.PidOf("head");
  kill(head, SIGSTOP);
  for (const std::string& name : Trainers(2)) {
    EXPECT_TRUE(run.WaitForLog(name, "the head did not hear the end", std::chrono::seconds(180)));
  }
  kill(head, SIGKILL);
  const nlohmann::json report = ExpectUndisturbedResult(run);
  EXPECT_EQ(report["state"], "Succeeded");
  EXPECT_NE(run.log("head").find("had finished"), std::string::npos) << run.log("head");
}

TEST(Survival, AHeadAndATrainerAreKilledTogether) {
  LocalRun run(SmallJobYaml(), SlowJob());
  ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
  kill(run.PidOf("gpu-1"), SIGKILL);
  kill(run.PidOf("head"), SIGKILL);
  const nlohmann::json report = ExpectUndisturbedResult(run);
  EXPECT_EQ(Starts(run, "gpu-0"), 1);
  EXPECT_EQ(FaultsWith(report, "the head was lost"), 1) << report;
  EXPECT_EQ(FaultsWith(report, "gpu-1 was"), 1) << report;
  ExpectWholeHistory(report);
}

TEST(Survival, ScopeGangBeginsANewAttemptFromTheCheckpoint) {
  TemporaryFolder checkpoints;
  LocalRun run(SmallJobYaml(), SlowJob({"roles.gpu.restartScope=Gang",
                                        "training.checkpoint={uri: 'file://" + checkpoints.path() +
                                            "', everySteps: 2}"}));
  ASSERT_TRUE(run.WaitForLog("gpu-0", "wrote a checkpoint", std::chrono::seconds(60)));
  kill(run.PidOf("gpu-1"), SIGKILL);
  const nlohmann::json report = ExpectUndisturbedResult(run);
  EXPECT_EQ(report["attempt"], 2);
  EXPECT_GT(report.value("resumedFromStep", 0), 0);
  EXPECT_EQ(report["attempts"].size(), 2u) << report;
  EXPECT_EQ(FaultsWith(report, "gpu-1 was lost"), 1) << report;
  EXPECT_GE(report.value("generations", 0), 2);
  ExpectWholeHistory(report);
}

TEST(Survival, TheBudgetOfRestartsIsOneForAll) {
  LocalRun run(SmallJobYaml(), SlowJob({"runPolicy.maxRestarts=1"}));
  ASSERT_TRUE(WaitForFirstStep(run, "gpu-0"));
  const pid_t first = run.PidOf("gpu-1");
  kill(first, SIGKILL);
  kill(WaitForReplacement(run, "gpu-1", first), SIGKILL);
  const ProgramResult result = run.Wait(std::chrono::seconds(120));
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_NE(result.output.find("runPolicy.maxRestarts (1) is used up"), std::string::npos)
      << result.output;
  EXPECT_EQ(run.report()["state"], "Failed");
}

}  // namespace
}  // namespace hetero
