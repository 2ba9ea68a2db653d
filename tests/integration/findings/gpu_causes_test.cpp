// Rules about GPUs in real jobs, on machines without one: the driver is played
// (played_gpu_plugin.cpp), nothing else is.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/integration/findings/cause.h"
#include "tests/integration/findings/setups.h"
#include "tests/support/temporary_folder.h"

namespace hetero::testing {
namespace {

using nlohmann::json;

// Where a program finds the played driver by its usual name.
std::string LibraryPath() {
  static const TemporaryFolder* const folder = [] {
    const auto* made = new TemporaryFolder;
    std::filesystem::create_symlink(HETERO_PLAYED_GPU_PLUGIN, *made / "libnvidia-ml.so.1");
    return made;
  }();
  const char* given = std::getenv("LD_LIBRARY_PATH");
  return "LD_LIBRARY_PATH=" + folder->path() + (given == nullptr ? "" : ":" + std::string(given));
}

std::vector<std::string> Model(const std::string& name) {
  return {"training.model={plugin: '" HETERO_PLAYED_GPU_PLUGIN "', name: " + name + "}"};
}

// Batches of 32 that cost next to nothing.
JobSetup OnGpu(const std::string& model, const std::vector<std::string>& more = {}) {
  return {.settings =
              With(With({"pipeline=[{op: HorizontalFlip}, {op: Normalize}]", "roles.cpu.replicas=1",
                         "training.batchSizePerWorker=32", "training.maxSteps=250"},
                        Model(model)),
                   more),
          .environment = {LibraryPath()}};
}

const Gain kFewerFindings = {
    .unit = "findings",
    .of = [](const json& report) { return double(FindingsOf(report).size()) + 1; },
    .more_is_better = false,
    .times = 1.4};

Cause RoomOnTheGpu() {
  return {.name = "RoomOnTheGpu",
          .rule = "BatchSize",
          .job = OnGpu("kernel_24_750"),
          .field = "training.batchSizePerWorker"};
}

Cause AnIdleGpu() {
  return {.name = "AnIdleGpu",
          .rule = "LowGPUUtilization",
          .member = "gpu-0",
          .job = OnGpu("full_12_700"),
          .field = "training.batchSizePerWorker",
          .gain = {.of = SamplesPerSecond, .times = 1.1}};
}

Cause AGpuThatFills() {
  return {.name = "AGpuThatFills",
          .rule = "GPUMemoryIncrease",
          .member = "gpu-0",
          .job = OnGpu("growing_1_2500", {"training.maxSteps=200"}),
          .field = "training.batchSizePerWorker",
          .cured = OnGpu("kernel_1_2500", {"training.maxSteps=200"}),
          .outside = true,
          .gain = kFewerFindings};
}

Cause UnequalGpus() {
  const std::vector<std::string> two = {"roles.gpu.replicas=2"};
  return {.name = "UnequalGpus",
          .rule = "LoadBalancing",
          .member = "*",
          .job = OnGpu("unequal_2_900", two),
          .field = "roles",
          .cured = OnGpu("kernel_2_150", With(two, {"training.maxSteps=800"})),
          .outside = true,
          .gain = {.of = SamplesPerSecond, .times = 2}};
}

Cause ADiskThatIsWaitedFor() {
  return {.name = "ADiskThatIsWaitedFor",
          .rule = "IOBottleneck",
          .member = "gpu-0",
          .job = OnGpu("disk_20_20", {"training.maxSteps=400"}),
          .quiet = true,
          .field = "dataset.shuffle.mode",
          .cured = OnGpu("kernel_1_600"),
          .outside = true,
          .gain = kFewerFindings};
}

// What trainers compute on their own cores beside them leaves GPUs without work.
Cause ABusyGpuHost() {
  return {.name = "ABusyGpuHost",
          .rule = "CPUBottleneck",
          .member = "gpu-0",
          .job = OnGpu("onecore_1_200",
                       {"dataset.image={height: 160, width: 160, channels: 3}",
                        "pipeline=[{op: GaussianBlur, kernelSize: 127, sigma: {min: 20, max: 30}, "
                        "repeat: 4, placement: Trainer}, {op: Normalize}]",
                        "training.batchSizePerWorker=8", "training.maxSteps=250"}),
          .quiet = true,
          .field = "roles.cpu.replicas",
          .remedy = {"pipeline[0].placement=CPUWorker"},
          .gain = {.of = SamplesPerSecond, .times = 1.15}};
}

class GpuCauses : public ::testing::TestWithParam<Cause (*)()> {};

TEST_P(GpuCauses, AreFoundFirstAndTheirRemediesHelp) { ExpectFoundAndHelped(GetParam()()); }

INSTANTIATE_TEST_SUITE_P(OfLongerJobs, GpuCauses,
                         ::testing::Values(RoomOnTheGpu, AnIdleGpu, AGpuThatFills, UnequalGpus,
                                           ADiskThatIsWaitedFor, ABusyGpuHost),
                         [](const auto& info) { return info.param().name; });

// Of a script: a model of ours would want the GPU that has a price.
TEST(PricedGpus, ThatStandIdleAreFoundWithTheirDollars) {
  const std::vector<std::string> settings =
      With(ScriptOf({"--compute", "0.01"}),
           {"roles.gpu.gpusPerReplica=1", "roles.gpu.pricePerHour='3.06'",
            "roles.cpu.pricePerHour='0.01'", "pipeline=[{op: HorizontalFlip}, {op: Normalize}]",
            "training.maxSteps=1200", "insight.rules=[{name: NoisyNeighbour, action: Ignore}]"});
  const json report = RunLocally(
      {.settings = settings, .environment = {LibraryPath(), "HETERO_PLAYED_GPU=pulses"}});
  const std::vector<json> findings = FindingsOf(report);
  ASSERT_FALSE(findings.empty()) << report.dump(1);
  EXPECT_EQ(findings[0].value("rule", ""), "IdleGPUDollars") << json(findings).dump(1);
  // 35 % of the time, at $3.06 an hour.
  const double whole = 3.06 * report["trainSeconds"].get<double>() / 3600;
  EXPECT_NEAR(findings[0].value("dollars", 0.0), 0.35 * whole, 0.1 * whole);
}

}  // namespace
}  // namespace hetero::testing
