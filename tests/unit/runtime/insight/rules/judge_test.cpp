#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/insight/rules/rule.h"
#include "tests/unit/runtime/insight/rules/examples.h"

namespace hetero::insight {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> Names(const std::vector<Finding>& findings) {
  std::vector<std::string> names;
  for (const Finding& finding : findings) names.push_back(finding.rule);
  return names;
}

Finding First(const Evidence& evidence) {
  const std::vector<Finding> findings = Judge(evidence, {});
  return findings.empty() ? Finding{} : findings[0];
}

void SetPrices(Evidence& evidence) {
  evidence.job.roles[0].price_per_hour = 0.68;  // four of them
  evidence.job.roles[1].price_per_hour = 3.06;  // two
}

TEST(JudgeTest, NothingIsFoundInNothing) { EXPECT_THAT(Judge({}, {}), IsEmpty()); }

TEST(JudgeTest, WhatExplainsComesBeforeWhatIsExplained) {
  EXPECT_THAT(Names(Judge(ExampleOf("StorageBound"), {})),
              ElementsAre("StorageBound", "InputBound"));
  EXPECT_THAT(Names(Judge(ExampleOf("BatchSize"), {})),
              ElementsAre("BatchSize", "LowGPUUtilization"));
}

// A larger batch is no remedy for a GPU that nobody uses.
TEST(JudgeTest, AnIdleGpuBesideABusyOneIsNotOneOfLittleUse) {
  Evidence evidence = Usual();
  for (Moment& moment : evidence.members[4].moments) moment.gpus[0].utilization = 0.02;
  EXPECT_THAT(Names(Judge(evidence, {})), Contains("LoadBalancing"));
  EXPECT_THAT(Names(Judge(evidence, {})), Not(Contains("LowGPUUtilization")));
}

TEST(JudgeTest, MoreSecondsComeFirst) {
  Evidence evidence = ExampleOf("CheckpointStall");  // 80 s
  evidence.job.evaluation_seconds = 300;
  evidence.job.evaluations = 10;
  EXPECT_THAT(Names(Judge(evidence, {})), ElementsAre("EvaluationShare", "CheckpointStall"));
  evidence.job.checkpoint_seconds = 310;
  EXPECT_THAT(Names(Judge(evidence, {})), ElementsAre("CheckpointStall", "EvaluationShare"));
}

TEST(JudgeTest, DollarsComeBeforeSeconds) {
  Evidence evidence = ExampleOf("IdleWorkers");
  evidence.members[0].clock_offset_seconds = 3;
  EXPECT_THAT(Names(Judge(evidence, {})), ElementsAre("IdleWorkers", "ClockSkew"));
  SetPrices(evidence);
  const std::vector<Finding> findings = Judge(evidence, {});
  EXPECT_THAT(Names(findings), ElementsAre("IdleWorkers", "ClockSkew"));
  // Two of four are enough; a minute of two.
  EXPECT_NEAR(*findings[0].dollars, 2 * 0.68 / 60, 1e-9);
  EXPECT_FALSE(findings[1].dollars);
}

TEST(JudgeTest, SecondsCostWhatTheWholeJobCosts) {
  Evidence evidence = ExampleOf("InputBound");
  EXPECT_FALSE(First(evidence).dollars);
  SetPrices(evidence);
  EXPECT_NEAR(First(evidence).seconds, 24, 1e-9);
  EXPECT_NEAR(*First(evidence).dollars, 24.0 / 3600 * (4 * 0.68 + 2 * 3.06), 1e-9);
  evidence.job.roles[0].price_per_hour.reset();
  EXPECT_FALSE(First(evidence).dollars);
}

TEST(JudgeTest, AShortWindowSaysNothingButOfTheTraining) {
  Evidence evidence = ExampleOf("InputBound");
  evidence.job.startup_seconds = 1500;
  evidence.window_seconds = 19.9;
  EXPECT_THAT(Names(Judge(evidence, {})), ElementsAre("MaxInitializationTime"));
  evidence.window_seconds = 20;
  EXPECT_EQ(Judge(evidence, {}).size(), 2U);
  evidence.window_seconds = 5;
  evidence.complete = true;
  EXPECT_EQ(Judge(evidence, {}).size(), 2U);
}

TEST(JudgeTest, WhatWasDoneOnceCountsAtTheEnd) {
  Evidence evidence = ExampleOf("CheckpointStall");
  evidence.job.checkpoints = 1;
  EXPECT_THAT(Judge(evidence, {}), IsEmpty());
  evidence.complete = true;
  EXPECT_EQ(First(evidence).rule, "CheckpointStall");
}

TEST(JudgeTest, TheSameEvidenceGivesTheSameFindings) {
  for (const Rule& rule : AllRules()) {
    const Evidence evidence = ExampleOf(rule.name);
    EXPECT_EQ(Judge(evidence, {}), Judge(evidence, {}));
  }
}

TEST(JudgeTest, RulesAboutGpusNeedTheirCounters) {
  for (const char* rule : {"CPUBottleneck", "IOBottleneck", "BatchSize", "LowGPUUtilization",
                           "LoadBalancing", "GPUMemoryIncrease", "IdleGPUDollars"}) {
    Evidence evidence = ExampleOf(rule);
    for (MemberEvidence& member : evidence.members) {
      for (Moment& moment : member.moments) moment.gpus.clear();
    }
    EXPECT_THAT(Judge(evidence, {}), IsEmpty()) << rule;
  }
}

TEST(JudgeTest, WaitingWithoutAWorkerIsSaid) {
  Evidence evidence = ExampleOf("InputBound");
  for (RankEvidence& rank : evidence.ranks) rank.waits = {.no_worker = 20, .workers = 4};
  EXPECT_EQ(First(evidence).message,
            "rank 0 waits for data 40 % of its time, 83 % of it without a connected CPU worker");
  EXPECT_EQ(First(evidence).field, "roles.cpu.capacity");
}

TEST(JudgeTest, WaitingForACoreOfTheTrainerIsSaid) {
  Evidence evidence = ExampleOf("InputBound");
  for (RankEvidence& rank : evidence.ranks) rank.waits = {.workers = 4, .handover = 20};
  EXPECT_THAT(First(evidence).message, HasSubstr("until a core of the trainer takes them over"));
  EXPECT_EQ(First(evidence).field, "roles.gpu.template");
}

TEST(JudgeTest, AJobWithoutCpuWorkersIsToldToHaveSome) {
  Evidence evidence = ExampleOf("InputBound");
  evidence.members.erase(evidence.members.begin(), evidence.members.begin() + 4);
  evidence.job.roles.erase(evidence.job.roles.begin());
  EXPECT_EQ(First(evidence).remedy, "add a role of type CPUWorker to roles, with replicas: 1");
}

TEST(JudgeTest, AJobThatScalesItselfIsToldItsLimit) {
  Evidence evidence = ExampleOf("InputBound");
  evidence.job.roles[0].scaled_by_job = true;
  EXPECT_EQ(First(evidence).field, "roles.cpu.maxReplicas");
}

TEST(JudgeTest, AThrottledStoreIsAskedLessOften) {
  Evidence evidence = ExampleOf("StorageBound");
  for (int i = 0; i < 4; ++i) evidence.members[i].storage.throttled = 960;
  EXPECT_EQ(First(evidence).remedy,
            "set dataset.shuffle.mode to Block with blockSize 64: 32.0 times fewer requests");
  evidence.job.orders.clear();
  EXPECT_EQ(First(evidence).field, "dataset.uri");
}

TEST(JudgeTest, LivesOfBatchesStandInForUnknownSums) {
  Evidence evidence = ExampleOf("StorageBound");
  for (MemberEvidence& member : evidence.members) member.work_seconds = member.read_seconds = 0;
  EXPECT_EQ(First(evidence).rule, "InputBound");
  evidence.ranks[0].lives = {{.worker = "cpu-0", .work_seconds = 1, .read_seconds = 0.9}};
  EXPECT_EQ(First(evidence).rule, "StorageBound");
}

TEST(JudgeTest, WhatIsMadeLateArrivesLateWhateverTheNetwork) {
  Evidence evidence = ExampleOf("NetworkBound");
  EXPECT_EQ(First(evidence).rule, "NetworkBound");
  for (int i = 0; i < 4; ++i) evidence.members[i].busy_seconds = 58;
  EXPECT_THAT(Names(Judge(evidence, {})), ElementsAre("InputBound"));
}

TEST(JudgeTest, DecodeIsNoHotOperator) {
  Evidence evidence = ExampleOf("OneHotOperator");
  for (int i = 0; i < 4; ++i)
    std::swap(evidence.members[i].operators[0], evidence.members[i].operators[1]);
  EXPECT_THAT(Names(Judge(evidence, {})), ElementsAre("InputBound"));
}

TEST(JudgeTest, WhatHappensToOneMemberExplainsNothingOfAnother) {
  Evidence evidence = ExampleOf("SlowRank");  // gpu-1
  for (const int crowded : {4, 5}) {
    MemberEvidence& member = evidence.members[crowded];
    member.groups[0].cpu_seconds = 40;
    member.run_queue_seconds = 20;
    member.machine_busy_cores = 15;
    if (crowded == 4) {
      EXPECT_THAT(Names(Judge(evidence, {})), ElementsAre("SlowRank", "NoisyNeighbour"));
      member.machine_busy_cores = 2;
    } else {
      EXPECT_THAT(Names(Judge(evidence, {})), ElementsAre("NoisyNeighbour", "SlowRank"));
    }
  }
}

TEST(JudgeTest, ALearningRateOfZeroIsNotToldToBeLowered) {
  Evidence evidence = ExampleOf("LearningNotMoving");
  EXPECT_THAT(First(evidence).remedy, HasSubstr("learningRate to 0.01;"));
  evidence.job.learning_rate = 0;
  EXPECT_THAT(First(evidence).remedy, HasSubstr("learningRate to 0.01: it is 0"));
}

TEST(JudgeTest, ALossThatIsANumberAgainIsNothingToFind) {
  Evidence evidence = ExampleOf("LossNotFinite");
  evidence.job.losses.back().loss = 0.5;
  for (const Finding& finding : Judge(evidence, {})) EXPECT_NE(finding.rule, "LossNotFinite");
}

TEST(JudgeTest, ATenthOfALearningRateFarTooHighIsTooHigh) {
  Evidence evidence = ExampleOf("LossNotFinite");
  evidence.job.learning_rate = 1e38;
  EXPECT_THAT(First(evidence).remedy, HasSubstr("learningRate to 0.1,"));
}

}  // namespace
}  // namespace hetero::insight
