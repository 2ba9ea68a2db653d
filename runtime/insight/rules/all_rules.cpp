#include "runtime/insight/rules/judges.h"
#include "runtime/insight/rules/rule.h"

// The table of all rules. Thresholds that begin from SageMaker Debugger's have its name and value;
// docs/findings.md says where its documentation and its code differ.
namespace hetero::insight {
namespace {

using Names = std::vector<std::string_view>;

constexpr RuleWindow kRecent = RuleWindow::kRecent;
constexpr RuleWindow kTraining = RuleWindow::kTraining;
constexpr bool kOfMachine = true;

constexpr Threshold kWait = {
    "waitPercent", 10, "% of the time",
    "the rank that waits longest waits for data at least this share of its time"};
constexpr Threshold kRunQueue = {"runQueuePercent", 20, "% of the time",
                                 "at least so much threads that could run wait for a core"};
constexpr Threshold kLost = {"lostPercent", 5, "% of the time", "at least so much it costs"};
constexpr Threshold kGpuIdle = {"gpuPercent", 10, "% utilisation", "below it a GPU does nothing"};
constexpr Threshold kMostTime = {"timePercent", 50, "% of the time", "more than so long"};
constexpr Threshold kCount = {"count", 2, "times",
                              "at least so many there were; of a training that has ended, one"};

Names Join(Names names, const Names& more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

// Why a machine is slow.
const Names& Hosts() {
  static const Names names = {"OversubscribedHost", "NoisyNeighbour"};
  return names;
}

// Why trainers may wait for data.
const Names& Inputs() {
  static const Names names =
      Join(Hosts(), {"StorageBound", "NetworkBound", "SlowWorker", "OneHotOperator", "Dataloader",
                     "CPUBottleneck", "IOBottleneck"});
  return names;
}

// Why steps may take longer than they have to.
const Names& Steps() {
  static const Names names =
      Join(Inputs(), {"InputBound", "SlowRank", "SmallBatches", "GilBound", "ScriptBlocked",
                      "CheckpointStall", "EvaluationShare"});
  return names;
}

std::vector<Rule> InputRules() {
  return {
      {"InputBound", kRecent, {kWait}, Inputs(), JudgeInputBound},
      {"StorageBound",
       kRecent,
       {kWait,
        {"readPercent", 50, "% of the making of batches", "at least so much waits for the store"},
        {"throttledPercent", 1, "% of requests", "from so many on the store throttles"},
        {"retriedPercent", 10, "% of requests", "likewise, of those that were sent again"}},
       {},
       JudgeStorageBound},
      {"NetworkBound",
       kRecent,
       {kWait,
        {"transferPercent", 50, "% of the waiting", "at least so much batches are on their way"}},
       Hosts(),
       JudgeNetworkBound},
      {"OneHotOperator",
       kRecent,
       {kWait,
        {"sharePercent", 60, "% of the CPU time per sample", "at least so much one operator takes"},
        {"cpuPercent", 50, "% of the CPU workers' cores", "at least so many are in use"}},
       {},
       JudgeOneHotOperator},
      {"Dataloader",
       kRecent,
       {kWait,
        {"fewestThreadsPercent", 70, "% of the cores", "fewer pipeline threads are too few"},
        {"mostThreadsPercent", 200, "% of the cores", "more pipeline threads are too many"},
        {"freeCoresPercent", 30, "% of the machine's cores",
         "threads are too few only while so many are free"}},
       Hosts(),
       JudgeDataloader,
       kOfMachine},
      {"SlowWorker",
       kRecent,
       {kWait,
        {"slowerThan", 1.5, "times", "so much faster is the median of its role's others, or more"}},
       Join(Hosts(), {"StorageBound"}),
       JudgeSlowWorker,
       kOfMachine},
      {"IdleWorkers",
       kRecent,
       {{"busyPercent", 40, "% of the time", "CPU workers have work for less"},
        {"waitPercent", 2, "% of the time", "trainers wait for data at most so much"}},
       Join(Steps(), {"StepOutlier"}),
       JudgeIdleWorkers},
  };
}

std::vector<Rule> HostRules() {
  return {
      {"OversubscribedHost",
       kRecent,
       {kWait,
        kRunQueue,
        kLost,
        {"machineBusyPercent", 80, "% of the machine's cores", "at least so many are in use"},
        {"othersPercent", 25, "% of the machine's cores", "others than this job use less"},
        {"throttledPercent", 20, "% of the time",
         "or at least so much a trainer is stopped by its CPU limit"}},
       {"NoisyNeighbour"},
       JudgeOversubscribedHost,
       kOfMachine},
      {"NoisyNeighbour",
       kRecent,
       {kWait,
        kRunQueue,
        kLost,
        {"othersPercent", 25, "% of the machine's cores", "at least so many others use"}},
       {},
       JudgeNoisyNeighbour},
      {"ClockSkew",
       kRecent,
       {{"seconds", 1, "s", "at least so much, beyond what the measurement may be wrong by"}},
       {},
       JudgeClockSkew},
      {"HostMemoryGrowth",
       kRecent,
       {{"growthPercent", 2, "% of the limit", "at least so much in the window, all along"},
        {"minutesLeft", 60, "min", "the limit is reached in at most so long"}},
       {},
       JudgeHostMemoryGrowth},
  };
}

std::vector<Rule> StepRules() {
  return {
      {"SlowRank",
       kRecent,
       {{"slowerThan", 1.2, "times",
         "so much more time for its own work than the median of the others, or more"},
        kLost},
       Hosts(),
       JudgeSlowRank,
       kOfMachine},
      {"StepOutlier",
       kRecent,
       {{"standardDeviations", 3, "standard deviations", "above the mean a step is an outlier"},
        {"outliers", 10, "steps", "more than so many are outliers"},
        kLost},
       Steps(),
       JudgeStepOutlier},
      {"SmallBatches",
       kRecent,
       {{"mostSamples", 16, "samples", "a rank's batch has at most so many"},
        {"overheadPercent", 40, "% of the steps",
         "at least so much is spent on what does not depend on the batch"}},
       Join(Hosts(), {"SlowRank"}),
       JudgeSmallBatches},
      {"GilBound",
       kRecent,
       {{"fewestCores", 0.85, "cores", "at least so many the script's Python threads use together"},
        {"mostCores", 1.2, "cores", "and at most so many"},
        {"busiestPercent", 80, "% of it", "the busiest thread takes at most so much"},
        {"gpuPercent", 70, "% utilisation", "its GPUs, if any, are below"}},
       Hosts(),
       JudgeGilBound,
       kOfMachine},
      {"ScriptBlocked",
       kRecent,
       {{"restPercent", 50, "% of the time", "at least so much it does not wait for data"},
        {"cpuPercent", 10, "% of one core", "the script uses less"},
        {"gpuPercent", 10, "% utilisation", "its GPUs, if any, are below"}},
       {},
       JudgeScriptBlocked},
  };
}

std::vector<Rule> GpuRules() {
  return {
      {"CPUBottleneck",
       kRecent,
       {{"cpuPercent", 90, "% of the cores", "more than so many of a trainer are in use"},
        kGpuIdle,
        kMostTime},
       Join(Hosts(), {"OneHotOperator", "GilBound"}),
       JudgeCpuBottleneck,
       kOfMachine},
      {"IOBottleneck",
       kRecent,
       {{"ioPercent", 50, "% of the time", "more than so much tasks of a trainer wait for disks"},
        kGpuIdle,
        kMostTime},
       {"StorageBound"},
       JudgeIoBottleneck},
      {"BatchSize",
       kRecent,
       {{"cpuPercent", 70, "% of the cores", "the 95th percentile of each trainer is below"},
        {"gpuPercent", 70, "% utilisation", "the 95th percentile of each GPU is below"},
        {"memoryPercent", 70, "% of its memory", "the 95th percentile of each GPU is below"}},
       Steps(),
       JudgeBatchSize},
      {"LowGPUUtilization",
       kRecent,
       {{"highPercent", 70, "% utilisation", "the 95th percentile of each GPU is below, or"},
        {"lowPercent", 10, "% utilisation",
         "the 5th percentile of one is below, and its 95th is not"}},
       Join(Steps(), {"BatchSize"}),
       JudgeLowGpuUtilization},
      {"LoadBalancing",
       kRecent,
       {{"distance", 0.5, "of 1",
         "at least so far is the histogram of a GPU's utilisation from the others'"}},
       Steps(),
       JudgeLoadBalancing},
      {"GPUMemoryIncrease",
       kRecent,
       {{"growthPercent", 10, "% of its memory", "at least so much in the window, all along"}},
       {},
       JudgeGpuMemoryIncrease},
      {"IdleGPUDollars",
       kRecent,
       {{"idlePercent", 30, "% of the time", "at least so much GPUs that have a price are idle"}},
       Join(Steps(), {"BatchSize", "LowGPUUtilization", "LoadBalancing"}),
       JudgeIdleGpuDollars},
  };
}

std::vector<Rule> TrainingRules() {
  return {
      {"MaxInitializationTime",
       kTraining,
       {{"minutes", 20, "min", "from the job's creation to its first step there are more"}},
       {},
       JudgeMaxInitializationTime},
      {"CheckpointStall",
       kTraining,
       {{"sharePercent", 5, "% of the training", "at least so much checkpoints take"}, kCount},
       {},
       JudgeCheckpointStall},
      {"EvaluationShare",
       kTraining,
       {{"sharePercent", 20, "% of the training", "at least so much evaluations take"}, kCount},
       {},
       JudgeEvaluationShare},
      {"LearningNotMoving",
       kTraining,
       {{"steps", 200, "steps", "the curve of the loss spans at least so many"},
        {"improvementPercent", 1, "% of the first loss",
         "the last fifth of it is not so much lower"}},
       {"LossNotFinite"},
       JudgeLearningNotMoving},
      {"LossNotFinite",
       kTraining,
       {{"points", 1, "losses", "at least so many are not finite, or"},
        {"skippedPercent", 1, "% of the steps",
         "at least so many were skipped for their gradients"}},
       {},
       JudgeLossNotFinite},
  };
}

std::vector<Rule> MakeRules() {
  std::vector<Rule> all;
  for (const auto& family : {InputRules(), HostRules(), StepRules(), GpuRules(), TrainingRules()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

}  // namespace

const std::vector<Rule>& AllRules() {
  static const std::vector<Rule> rules = MakeRules();
  return rules;
}

}  // namespace hetero::insight
