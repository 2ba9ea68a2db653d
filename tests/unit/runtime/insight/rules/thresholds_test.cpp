#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "runtime/insight/rules/rule.h"
#include "tests/unit/runtime/insight/rules/examples.h"

namespace hetero::insight {
namespace {

// What was measured in the example lies between the two values of the threshold.
struct Boundary {
  std::string rule, threshold;
  double found_at = 0, missed_at = 0;
  std::function<void(Evidence&)> change = nullptr;  // of the example
  std::string words = "";  // that the message has when the threshold is reached
};

void Throttle(Evidence& e) {
  for (int i = 0; i < 4; ++i) e.members[i].storage.throttled = 960;
}

void Retry(Evidence& e) {
  for (int i = 0; i < 4; ++i) e.members[i].storage.retries = 1920;
}

void RunTwentyThreads(Evidence& e) {
  for (int i = 0; i < 4; ++i) e.members[i].groups[0].threads = 20;
}

void StopTrainer(Evidence& e) {
  e = Usual();
  e.members[4].throttled_seconds = 30;
}

void Fluctuate(Evidence& e) {
  e = Usual();
  for (int i = 0; i < 12; ++i) e.members[4].moments[i].gpus[0].utilization = 0.05;
}

void SkipSteps(Evidence& e) {
  e = Usual();
  e.job.skipped_steps = 100;
}

std::vector<Boundary> AllBoundaries() {
  return {
      {"InputBound", "waitPercent", 39.99, 40.01},
      {"StorageBound", "waitPercent", 39.99, 40.01},
      {"StorageBound", "readPercent", 75, 75.01},
      {"StorageBound", "throttledPercent", 10, 10.01, Throttle, "asks to slow down in 10 %"},
      {"StorageBound", "retriedPercent", 20, 20.01, Retry, "fails 20 %"},
      {"NetworkBound", "waitPercent", 39.99, 40.01},
      {"NetworkBound", "transferPercent", 75, 75.01},
      {"OneHotOperator", "waitPercent", 39.99, 40.01},
      {"OneHotOperator", "sharePercent", 79.99, 80.01},
      {"OneHotOperator", "cpuPercent", 67.5, 67.51},
      {"Dataloader", "waitPercent", 39.99, 40.01},
      {"Dataloader", "fewestThreadsPercent", 25.01, 25},
      {"Dataloader", "mostThreadsPercent", 249.99, 250, RunTwentyThreads},
      {"Dataloader", "freeCoresPercent", 69.99, 70.01},
      {"SlowWorker", "waitPercent", 19.99, 20.01},
      {"SlowWorker", "slowerThan", 4, 4.01},
      {"IdleWorkers", "busyPercent", 30.01, 29.99},
      {"IdleWorkers", "waitPercent", 1.01, 0.99},
      {"OversubscribedHost", "waitPercent", 39.99, 40.01},
      {"OversubscribedHost", "runQueuePercent", 75, 75.01},
      {"OversubscribedHost", "lostPercent", 28.99, 29.01},
      {"OversubscribedHost", "machineBusyPercent", 97.49, 97.51},
      {"OversubscribedHost", "othersPercent", 0.84, 0.83},
      {"OversubscribedHost", "throttledPercent", 50, 50.01, StopTrainer},
      {"NoisyNeighbour", "waitPercent", 39.99, 40.01},
      {"NoisyNeighbour", "runQueuePercent", 60, 60.01},
      {"NoisyNeighbour", "lostPercent", 22.49, 22.51},
      {"NoisyNeighbour", "othersPercent", 62.5, 62.51},
      {"ClockSkew", "seconds", 41.498, 41.5},
      {"HostMemoryGrowth", "growthPercent", 7.27, 7.29},
      {"HostMemoryGrowth", "minutesLeft", 3.8, 3.7},
      {"SlowRank", "slowerThan", 1.611, 1.612},
      {"SlowRank", "lostPercent", 35.66, 35.67},
      {"StepOutlier", "standardDeviations", 4.89, 4.91},
      {"StepOutlier", "outliers", 11, 12},
      {"StepOutlier", "lostPercent", 16.66, 16.67},
      {"SmallBatches", "mostSamples", 4, 3},
      {"SmallBatches", "overheadPercent", 60.16, 60.17},
      {"GilBound", "fewestCores", 1, 1.01},
      {"GilBound", "mostCores", 1, 0.99},
      {"GilBound", "busiestPercent", 25, 24.99},
      {"GilBound", "gpuPercent", 30.01, 29.99},
      {"ScriptBlocked", "restPercent", 98.99, 99.01},
      {"ScriptBlocked", "cpuPercent", 3.01, 2.99},
      {"ScriptBlocked", "gpuPercent", 2.01, 1.99},
      {"CPUBottleneck", "cpuPercent", 97.99, 98.01},
      {"CPUBottleneck", "gpuPercent", 4.01, 3.99},
      {"CPUBottleneck", "timePercent", 59.99, 60},
      {"IOBottleneck", "ioPercent", 79.99, 80.01},
      {"IOBottleneck", "gpuPercent", 4.01, 3.99},
      {"IOBottleneck", "timePercent", 59.99, 60},
      {"BatchSize", "cpuPercent", 11.01, 10.99},
      {"BatchSize", "gpuPercent", 40.01, 39.99},
      {"BatchSize", "memoryPercent", 30.01, 29.99},
      {"LowGPUUtilization", "highPercent", 40.01, 39.99},
      {"LowGPUUtilization", "lowPercent", 5.01, 4.99, Fluctuate},
      {"LoadBalancing", "distance", 0.719, 0.721},
      {"GPUMemoryIncrease", "growthPercent", 19.99, 20.01},
      {"IdleGPUDollars", "idlePercent", 33.99, 34.01},
      {"MaxInitializationTime", "minutes", 24.99, 25},
      {"CheckpointStall", "sharePercent", 10, 10.01},
      {"CheckpointStall", "count", 16, 17},
      {"EvaluationShare", "sharePercent", 37.5, 37.51},
      {"EvaluationShare", "count", 10, 11},
      {"LearningNotMoving", "steps", 3900, 3901},
      {"LearningNotMoving", "improvementPercent", 0.01, 0},
      {"LossNotFinite", "points", 10, 11},
      {"LossNotFinite", "skippedPercent", 2.5, 2.51, SkipSteps},
  };
}

bool Finds(const Boundary& boundary, double value) {
  Evidence evidence = ExampleOf(boundary.rule);
  if (boundary.change) boundary.change(evidence);
  const Settings settings = {{boundary.rule, {.thresholds = {{boundary.threshold, value}}}}};
  for (const Finding& finding : Judge(evidence, settings)) {
    if (finding.rule != boundary.rule) continue;
    return finding.message.find(boundary.words) != std::string::npos;
  }
  return false;
}

TEST(ThresholdsTest, EachDecidesAtWhatWasMeasured) {
  for (const Boundary& boundary : AllBoundaries()) {
    EXPECT_TRUE(Finds(boundary, boundary.found_at))
        << boundary.rule << "." << boundary.threshold << " " << boundary.found_at;
    EXPECT_FALSE(Finds(boundary, boundary.missed_at))
        << boundary.rule << "." << boundary.threshold << " " << boundary.missed_at;
  }
}

TEST(ThresholdsTest, EachHasABoundary) {
  std::set<std::string> tested, all;
  for (const Boundary& boundary : AllBoundaries()) {
    tested.insert(boundary.rule + "." + boundary.threshold);
  }
  for (const Rule& rule : AllRules()) {
    for (const Threshold& threshold : rule.thresholds) {
      all.insert(std::string(rule.name) + "." + std::string(threshold.name));
    }
  }
  EXPECT_EQ(tested, all);
}

TEST(ThresholdsTest, WithoutSettingsTheDefaultsHold) {
  Evidence evidence = Usual();
  LetWait(evidence, 5.99);
  EXPECT_TRUE(Judge(evidence, {}).empty());
  LetWait(evidence, 6.01);
  EXPECT_EQ(Judge(evidence, {}).size(), 1U);
}

}  // namespace
}  // namespace hetero::insight
