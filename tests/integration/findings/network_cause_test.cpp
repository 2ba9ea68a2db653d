// A job between whose CPU worker and trainer lies a slow network: the pods that the operator would
// create, in a network namespace of their own, whose loopback is slow for what the worker sends.
#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <cstdlib>
#include <thread>

#include "api/manifest.h"
#include "tests/integration/findings/cause.h"
#include "tests/integration/local/local_pods.h"

namespace hetero::testing {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kPodDeadline(120);

bool Shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

// The calling thread's, and its children's, from now on.
bool EnterNetworkOfItsOwn() {
  return unshare(CLONE_NEWNET) == 0 && Shell("ip link set lo up") &&
         Shell("tc qdisc add dev lo root handle 1: htb") &&
         Shell("tc class add dev lo parent 1: classid 1:1 htb rate 4mbit burst 128k");
}

bool SlowDown(const std::string& address) {
  return Shell("tc filter add dev lo parent 1: protocol ip u32 match ip src " + address +
               " flowid 1:1");
}

// On a thread in a network of its own; nothing where this machine allows none.
std::optional<json> RunPods(const std::vector<std::string>& settings) {
  std::optional<json> report;
  std::thread([&] {
    if (!EnterNetworkOfItsOwn()) return;
    api::ManifestResult manifest = api::ParseManifest(BalancedJob(), settings);
    ASSERT_TRUE(manifest.errors.empty()) << api::FormatErrors(manifest.errors);
    LocalPods pods(manifest.job);
    pods.Start("head");
    pods.Start("cpu");
    if (!SlowDown(pods.AddressOf("cpu-0"))) return;
    pods.Start("gpu");
    for (const char* pod : {"gpu-0", "head-0"}) {
      const ProgramResult result = pods.Run(pod).Wait(kPodDeadline);
      EXPECT_EQ(result.exit_code, 0) << pod << ":\n" << result.output;
    }
    report = json::parse(ReadFileOrDie(pods.output_folder() + "/report.json"));
  }).join();
  return report;
}

TEST(NetworkCause, ASlowNetworkIsNamedAndSmallerPicturesHelp) {
  if (!RunPods({"roles.cpu.replicas=1", "training.maxSteps=1"})) {
    GTEST_SKIP() << "no network namespaces, or no ip and tc with htb, for this user";
  }
  ExpectFoundAndHelped(
      {.name = "ASlowNetwork",
       .rule = "NetworkBound",
       .job = {.settings = {"dataset.image={height: 64, width: 64, channels: 3}",
                            "pipeline=[{op: HorizontalFlip}, {op: Delay, milliseconds: 4}, {op: "
                            "Resize, size: {height: 16, width: 16}, placement: Trainer}, {op: "
                            "Normalize}]",
                            "roles.cpu.replicas=1", "training.model.name=paced_10",
                            "training.maxSteps=60"}},
       .field = "placement.zone",
       .remedy = {"pipeline=[{op: Resize, size: {height: 16, width: 16}}, {op: HorizontalFlip}, "
                  "{op: Delay, milliseconds: 4}, {op: Normalize}]"},
       .run =
           [](const JobSetup& setup, const std::vector<std::string>& more) {
             std::vector<std::string> settings = setup.settings;
             settings.insert(settings.end(), more.begin(), more.end());
             return RunPods(settings).value_or(json());
           },
       .symptom =
           [](const json& report) {
             EXPECT_GT(report["waitSeconds"]["transfer"].get<double>(),
                       0.4 * report["trainSeconds"].get<double>());
           },
       .gain = {.of = SamplesPerSecond}});
}

}  // namespace
}  // namespace hetero::testing
