// Jobs that something is wrong with: it is what is found first, and doing what the finding says
// helps. Paced by sleeping where that shows the cause; the others compare what differs by several
// times.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "tests/integration/findings/cause.h"
#include "tests/integration/findings/script_causes.h"
#include "tests/integration/findings/setups.h"
#include "tests/support/paths.h"

namespace hetero::testing {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

void ExpectWaiting(const json& report) {
  EXPECT_GT(Phase(report, "wait"), 0.3 * report["trainSeconds"].get<double>())
      << report["phaseSeconds"];
}

Cause TooFewWorkers() {
  return {.name = "TooFewWorkers",
          .rule = "InputBound",
          .job = {.settings = {"roles.cpu.replicas=1", "pipeline[0].milliseconds=18",
                               "training.maxSteps=120"}},
          .field = "roles.cpu.replicas",
          .symptom = ExpectWaiting};
}

const std::vector<std::string> kPrices = {
    "roles.head.pricePerHour='0'", "roles.cpu.pricePerHour='0.8'", "roles.gpu.pricePerHour='0.1'"};
const Gain kCheaper = {
    .unit = "dollars per million samples",
    .of = [](const json& report) -> double { return report.at("costPerMillionSamples"); },
    .more_is_better = false,
    .times = 1.4};

Cause TooManyWorkers() {
  return {.name = "TooManyWorkers",
          .rule = "IdleWorkers",
          .job = {.settings = With({"roles.cpu.replicas=6"}, kPrices)},
          .field = "roles.cpu.replicas",
          .symptom =
              [](const json& report) {
                EXPECT_LT(Phase(report, "wait"), 0.05 * report["trainSeconds"].get<double>());
              },
          .gain = kCheaper};
}

int SamplesOf(const json& report, const std::string& name) {
  for (const json& worker : report["workers"]) {
    if (worker["name"] == name) return worker["samples"];
  }
  return 0;
}

// Of CPU workers; several on one machine have more threads than it has cores.
const std::vector<std::string> kOneThreadEach = {"HETERO_CPU_REQUEST_MILLICORES=1000"};

Cause ASlowWorker() {
  const std::vector<std::string> settings = {"roles.cpu.replicas=3", "pipeline[0].milliseconds=12",
                                             "training.model.name=paced_10",
                                             "training.maxSteps=250"};
  return {.name = "ASlowWorker",
          .rule = "SlowWorker",
          .member = "cpu-1",
          .job = {.settings = settings,
                  .environment = kOneThreadEach,
                  .strike =
                      [](LocalRun& run) {
                        return std::make_unique<StopPulses>(run.PidOf("cpu-1"), milliseconds(500),
                                                            milliseconds(50));
                      }},
          .field = "roles.cpu.template",
          .cured = {.settings = settings, .environment = kOneThreadEach},
          .outside = true,
          .symptom =
              [](const json& report) {
                EXPECT_LT(3 * SamplesOf(report, "cpu-1"), SamplesOf(report, "cpu-0"));
              },
          .gain = {.of = SamplesPerSecond, .times = 1.2}};
}

Cause ASlowRank() {
  return {.name = "ASlowRank",
          .rule = "SlowRank",
          .member = "gpu-1",
          .job = {.settings = {"roles.gpu.replicas=2", "pipeline[0].milliseconds=4",
                               "training.model.name=uneven_20", "training.maxSteps=110"}},
          .field = "roles.gpu.template",
          .cured = {.settings = {"roles.gpu.replicas=2", "pipeline[0].milliseconds=4",
                                 "training.model.name=paced_20", "training.maxSteps=220"}},
          .outside = true,
          .symptom = [](const json& report) { EXPECT_GT(Phase(report, "allReduce"), 3); },
          .gain = {.of = SamplesPerSecond, .times = 2}};
}

Cause TinyBatches() {
  return {.name = "TinyBatches",
          .rule = "SmallBatches",
          .job = {.settings = {"dataset.image={height: 48, width: 48, channels: 3}",
                               "pipeline=[{op: HorizontalFlip}, {op: Normalize}]",
                               "training.model={name: mlp}", "roles.gpu.replicas=2",
                               "training.batchSizePerWorker=8", "training.maxSteps=400"}},
          .field = "training.batchSizePerWorker",
          .gain = {.of = SamplesPerSecond, .times = 1.5}};
}

// Some milliseconds of a core for each sample.
std::vector<std::string> BlurredPictures(int workers, int steps) {
  return {"dataset.image={height: 160, width: 160, channels: 3}",
          "pipeline=[{op: GaussianBlur, kernelSize: 127, sigma: {min: 20, max: 30}, repeat: 4}, "
          "{op: Resize, size: {height: 16, width: 16}}, {op: Normalize}]",
          "roles.cpu.replicas=" + std::to_string(workers), "training.model.name=paced_1",
          "training.maxSteps=" + std::to_string(steps)};
}

Cause AHotOperator() {
  return {.name = "AHotOperator",
          .rule = "OneHotOperator",
          .job = {.settings = BlurredPictures(1, 200)},
          .quiet = true,
          .field = "pipeline[0]",
          .remedy = {"pipeline[0].kernelSize=3", "pipeline[0].sigma={min: 0.5, max: 1}"},
          .symptom = ExpectWaiting};
}

// PATH whose python3 has numpy: that of scripts/setup_python.sh, if it was run.
std::string PathWithNumpy() {
  const char* path = std::getenv("PATH");
  return testing::SourceDir() + "/.deps/python/bin:" + std::string(path == nullptr ? "" : path);
}

bool HasNumpy() {
  const std::string look = "PATH='" + PathWithNumpy() + "' python3 -c 'import numpy'";
  return std::system(look.c_str()) == 0;
}

Cause AHotPythonOperator() {
  const std::string path = testing::SourceDir() + "/tests/integration/findings/scripts";
  return {.name = "AHotPythonOperator",
          .rule = "OneHotOperator",
          .job = {.settings = {"pipeline=[{op: Python, module: slow_operators, function: slow, "
                               "path: '" +
                                   path +
                                   "', outputs: {image: {shape: [16, 16, 3]}}}, {op: "
                                   "HorizontalFlip}, {op: Normalize}]",
                               "roles.cpu.replicas=1", "training.model.name=paced_10",
                               "training.maxSteps=90"},
                  .environment = {"PATH=" + PathWithNumpy(), "PYTHONDONTWRITEBYTECODE=1"}},
          .quiet = true,
          .field = "pipeline[0]",
          .remedy = {"pipeline=[{op: HorizontalFlip}, {op: Normalize}]"},
          .symptom = ExpectWaiting};
}

Cause TooFewThreads() {
  const std::vector<std::string> settings = {"roles.cpu.replicas=1", "pipeline[0].milliseconds=12",
                                             "training.model.name=paced_10",
                                             "training.maxSteps=90"};
  return {.name = "TooFewThreads",
          .rule = "Dataloader",
          .member = "cpu-0",
          .job = {.settings = settings, .environment = kOneThreadEach},
          .quiet = true,
          .field = "roles.cpu.template",
          .cured = {.settings = settings},
          .outside = true,
          .symptom = ExpectWaiting};
}

// More threads than the machine has cores make no more, and cost more.
Cause ACrowdedHost() {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return {.name = "ACrowdedHost",
          .rule = "OversubscribedHost",
          .member = "*",
          .job = {.settings = With(BlurredPictures(2 * cores, 100 * cores), kPrices),
                  .environment = kOneThreadEach},
          .all_cores = true,
          .quiet = true,
          .field = "roles.cpu.template",
          .remedy = {"roles.cpu.replicas=" + std::to_string(cores)},
          .symptom = ExpectWaiting,
          .gain = kCheaper};
}

Cause ANoisyNeighbour() {
  return {.name = "ANoisyNeighbour",
          .rule = "NoisyNeighbour",
          .member = "*",
          .job = {.settings = With(BlurredPictures(1, 100), {"insight="}),
                  .strike =
                      [](LocalRun&) {
                        return std::make_unique<Neighbours>(
                            4 * static_cast<int>(std::thread::hardware_concurrency()));
                      }},
          .all_cores = true,
          .quiet = true,
          .field = "roles.cpu.template",
          .cured = {.settings = With(BlurredPictures(1, 100), {"insight="})},
          .outside = true,
          .symptom = ExpectWaiting,
          .gain = {.of = SamplesPerSecond, .times = 1.5}};
}

// In memory, where a checkpoint is written in little more time than it takes to copy the state;
// training goes on while it is written, and stands still while the state is copied.
constexpr char kMemory[] = "/dev/shm";
constexpr uintmax_t kCheckpointsNeed = 1 << 30;  // bytes

bool HasMemoryForCheckpoints() {
  std::error_code none;
  return std::filesystem::space(kMemory, none).available >= kCheckpointsNeed && !none;
}

class CheckpointsInMemory {
 public:
  CheckpointsInMemory() : path_(std::string(kMemory) + "/hetero-test-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no folder in " + path_);
  }
  ~CheckpointsInMemory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Cause ManyCheckpoints() {
  static const CheckpointsInMemory folder;
  return {.name = "ManyCheckpoints",
          .rule = "CheckpointStall",
          .job = {.settings = {"training.model.name=heavy_10",
                               "training.checkpoint={uri: 'file://" + folder.path() +
                                   "', everySteps: 1, keep: 1, resume: Never}",
                               "pipeline[0].milliseconds=3", "training.maxSteps=700"}},
          .field = "training.checkpoint.everySteps",
          .symptom =
              [](const json& report) {
                EXPECT_GT(Phase(report, "checkpoint"), 0.05 * report["trainSeconds"].get<double>());
              },
          .gain = {.of = SamplesPerSecond, .times = 1.04}};
}

Cause MuchEvaluation() {
  return {.name = "MuchEvaluation",
          .rule = "EvaluationShare",
          .job = {.settings = {"dataset.validation={uri: 'synthetic://', samples: 64, classes: 4, "
                               "image: {height: 16, width: 16, channels: 3}}",
                               "training.evaluation={everySteps: 10}", "training.maxSteps=120"}},
          .field = "training.evaluation.everySteps",
          .symptom = [](const json& report) {
            EXPECT_GT(Phase(report, "evaluation"), 0.3 * report["trainSeconds"].get<double>());
          }};
}

Cause Hiccups() {
  return {.name = "Hiccups",
          .rule = "StepOutlier",
          .member = "gpu-0",
          .job = {.settings = {"training.model.name=hiccup_20", "pipeline[0].milliseconds=6",
                               "training.maxSteps=220"}},
          .field = "training",
          .cured = {.settings = {"training.model.name=paced_20", "pipeline[0].milliseconds=6",
                                 "training.maxSteps=220"}},
          .outside = true,
          .gain = {.of = SamplesPerSecond, .times = 1.5}};
}

double LastLoss(const json& report) { return report.at("loss"); }

Cause NoLearning() {
  return {.name = "NoLearning",
          .rule = "LearningNotMoving",
          .job = {.settings = {"training.optimizer.learningRate=0"}},
          .field = "training.optimizer.learningRate",
          .gain = {.unit = "loss", .of = LastLoss, .more_is_better = false, .times = 1.1}};
}

// Samples from which something was learnt.
double UsedSamplesPerSecond(const json& report) {
  const double steps = report.at("steps");
  return SamplesPerSecond(report) * (steps - report.value("skippedSteps", 0.0)) / steps;
}

Cause NoFiniteLoss() {
  return {.name = "NoFiniteLoss",
          .rule = "LossNotFinite",
          .job = {.settings = {"training.optimizer.learningRate=1e38",
                               "training.stopOnNonFinite=Skip"}},
          .field = "training.optimizer.learningRate",
          .symptom = [](const json& report) { EXPECT_GT(report["skippedSteps"].get<int>(), 100); },
          .gain = {.unit = "samples/s that changed something", .of = UsedSamplesPerSecond}};
}

double LargestWorker(const json& report) {
  double most = 0;
  for (const json& worker : report.at("workers")) {
    if (worker["role"] == "cpu") most = std::max(most, worker["peakRssBytes"].get<double>());
  }
  return most / 1e6;
}

// Of workers that have something to make until the end.
Cause ALeak() {
  const std::string leaking =
      "pipeline=[{op: Delay, milliseconds: 19}, {op: Plugin, path: "
      "'" HETERO_LEAKING_OPERATOR_PLUGIN
      "', name: leak, parameters: {bytes: '400000'}}, {op: "
      "Normalize}]";
  // The limit is all of this machine's memory: it would take an hour to come near it.
  const std::string sharp =
      "insight.rules=[{name: NoisyNeighbour, action: Ignore}, {name: HostMemoryGrowth, thresholds: "
      "[{name: growthPercent, value: 0.02}, "
      "{name: minutesLeft, value: 100000}]}]";
  return {
      .name = "ALeak",
      .rule = "HostMemoryGrowth",
      .member = "*",
      .job = {.settings = {sharp, leaking}},
      .field = "roles.cpu.template",
      .cured = {.settings = {sharp}},
      .outside = true,
      .gain = {
          .unit = "MB of a CPU worker", .of = LargestWorker, .more_is_better = false, .times = 2}};
}

Cause AWrongClock() {
  static const WrongClock clock(std::chrono::seconds(30), "cpu-1");
  return {.name = "AWrongClock",
          .rule = "ClockSkew",
          .member = "cpu-1",
          .job = {.environment = clock.environment()},
          .field = "roles.cpu.template",
          .cured = {},
          .outside = true,
          .gain = {.unit = "findings",
                   .of = [](const json& report) { return double(FindingsOf(report).size()) + 1; },
                   .more_is_better = false,
                   .times = 1.9}};
}

class Causes : public ::testing::TestWithParam<Cause (*)()> {};

TEST_P(Causes, AreFoundFirstAndTheirRemediesHelp) {
  if (GetParam() == AHotPythonOperator && !HasNumpy()) {
    GTEST_SKIP() << "python3 has no numpy: scripts/setup_python.sh installs it";
  }
  if (GetParam() == ManyCheckpoints && !HasMemoryForCheckpoints()) {
    GTEST_SKIP() << kMemory << " has no room for 1 GB";
  }
  ExpectFoundAndHelped(GetParam()());
}

std::string NameOfCause(const ::testing::TestParamInfo<Cause (*)()>& info) {
  return info.param().name;
}

// The gate's; all others run in `make test-full`.
INSTANTIATE_TEST_SUITE_P(InTheGate, Causes, ::testing::Values(TooFewWorkers), NameOfCause);
INSTANTIATE_TEST_SUITE_P(OfLongerJobs, Causes,
                         ::testing::Values(TooManyWorkers, ASlowWorker, ASlowRank, TinyBatches,
                                           AHotOperator, AHotPythonOperator, TooFewThreads,
                                           ACrowdedHost, ANoisyNeighbour, ManyCheckpoints,
                                           MuchEvaluation, Hiccups, NoLearning, NoFiniteLoss, ALeak,
                                           AWrongClock, ALongStart, ABlockedScript,
                                           ALockedInterpreter),
                         NameOfCause);

}  // namespace
}  // namespace hetero::testing
