#pragma once

#include <vector>

#include "runtime/insight/finding.h"
#include "runtime/insight/rules/limits.h"
#include "runtime/insight/rules/reading.h"

// The judge of each rule, by families of which each has a source file. The contract of all is that
// of Rule::judge; what they are about, by which thresholds, is in all_rules.cpp.
namespace hetero::insight {

using Findings = std::vector<Finding>;

// input_rules.cpp, operator_rules.cpp: trainers wait for data.
Findings JudgeInputBound(const Reading& reading, const Limits& limits);
Findings JudgeStorageBound(const Reading& reading, const Limits& limits);
Findings JudgeNetworkBound(const Reading& reading, const Limits& limits);
Findings JudgeOneHotOperator(const Reading& reading, const Limits& limits);
Findings JudgeDataloader(const Reading& reading, const Limits& limits);

// worker_rules.cpp: CPU workers compared with each other, and with what they are needed for.
Findings JudgeSlowWorker(const Reading& reading, const Limits& limits);
Findings JudgeIdleWorkers(const Reading& reading, const Limits& limits);

// host_rules.cpp, memory_rules.cpp: machines.
Findings JudgeOversubscribedHost(const Reading& reading, const Limits& limits);
Findings JudgeNoisyNeighbour(const Reading& reading, const Limits& limits);
Findings JudgeClockSkew(const Reading& reading, const Limits& limits);
Findings JudgeHostMemoryGrowth(const Reading& reading, const Limits& limits);
Findings JudgeGpuMemoryIncrease(const Reading& reading, const Limits& limits);

// rank_rules.cpp: steps.
Findings JudgeSlowRank(const Reading& reading, const Limits& limits);
Findings JudgeStepOutlier(const Reading& reading, const Limits& limits);
Findings JudgeSmallBatches(const Reading& reading, const Limits& limits);

// script_rules.cpp: the user's own program.
Findings JudgeGilBound(const Reading& reading, const Limits& limits);
Findings JudgeScriptBlocked(const Reading& reading, const Limits& limits);

// gpu_rules.cpp, gpu_host_rules.cpp: nothing without counters of GPUs.
Findings JudgeLowGpuUtilization(const Reading& reading, const Limits& limits);
Findings JudgeBatchSize(const Reading& reading, const Limits& limits);
Findings JudgeLoadBalancing(const Reading& reading, const Limits& limits);
Findings JudgeIdleGpuDollars(const Reading& reading, const Limits& limits);
Findings JudgeCpuBottleneck(const Reading& reading, const Limits& limits);
Findings JudgeIoBottleneck(const Reading& reading, const Limits& limits);

// training_rules.cpp, learning_rules.cpp: the training from its beginning.
Findings JudgeMaxInitializationTime(const Reading& reading, const Limits& limits);
Findings JudgeCheckpointStall(const Reading& reading, const Limits& limits);
Findings JudgeEvaluationShare(const Reading& reading, const Limits& limits);
Findings JudgeLearningNotMoving(const Reading& reading, const Limits& limits);
Findings JudgeLossNotFinite(const Reading& reading, const Limits& limits);

}  // namespace hetero::insight
