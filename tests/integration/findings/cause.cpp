#include "tests/integration/findings/cause.h"

#include <gtest/gtest.h>

#include <iomanip>
#include <iostream>
#include <ostream>
#include <regex>

namespace hetero::testing {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kCauseDeadline(180);

// How long a job may take to begin before nothing befalls it any more.
constexpr std::chrono::seconds kBeginning(60);

// "set FIELD to VALUE" as a setting, and with it "with blockSize N" of the order of samples;
// nothing: the remedy is no such sentence.
std::vector<std::string> SettingsOf(const json& finding) {
  const std::regex sentence("^set (\\S+) to ([^ ,;:]+)(?: with blockSize ([0-9]+))?");
  const std::string remedy = finding.value("remedy", "");
  std::smatch parts;
  if (!std::regex_search(remedy, parts, sentence)) return {};
  std::vector<std::string> settings = {parts[1].str() + "=" + parts[2].str()};
  if (parts[3].matched) settings.push_back("dataset.shuffle.blockSize=" + parts[3].str());
  return settings;
}

// What to set, as the finding says.
std::vector<std::string> Remedy(const Cause& cause, const json& finding) {
  if (!cause.remedy.empty()) return cause.remedy;
  std::vector<std::string> settings = SettingsOf(finding);
  EXPECT_TRUE(!settings.empty() && settings[0].starts_with(cause.field + "=")) << finding;
  return settings;
}

void ExpectMoved(const Cause& cause, double before, double after) {
  std::cout << "CAUSE " << cause.name << " (" << cause.rule << "): before " << std::setprecision(3)
            << before << " " << cause.gain.unit << ", after " << after << " " << cause.gain.unit
            << std::endl;
  if (cause.gain.more_is_better) {
    EXPECT_GT(after, before * cause.gain.times);
  } else {
    EXPECT_LT(after * cause.gain.times, before);
  }
}

}  // namespace

json RunLocally(const JobSetup& setup, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = setup.arguments;
  for (const std::vector<std::string>* settings : {&setup.settings, &more}) {
    for (const std::string& setting : *settings) {
      arguments.insert(arguments.end(), {"--set", setting});
    }
  }
  LocalRun run(BalancedJob(), arguments, setup.environment);
  std::unique_ptr<Disturbance> disturbance;
  if (setup.strike) {
    EXPECT_TRUE(run.WaitForLog("gpu-0", "first step of the generation", kBeginning));
    disturbance = setup.strike(run);
  }
  const ProgramResult result = run.Wait(kCauseDeadline);
  disturbance.reset();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  return run.report();
}

double SamplesPerSecond(const json& report) {
  return report.at("samplesConsumed").get<double>() / report.at("trainSeconds").get<double>();
}

std::string BalancedJob() {
  return std::string(R"(
apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: findings}
spec:
  dataset:
    uri: "synthetic://"
    samples: 4096
    classes: 4
    image: {height: 16, width: 16, channels: 3}
  pipeline:
  - {op: Delay, milliseconds: 12}
  - {op: HorizontalFlip}
  - {op: Normalize}
  training:
    model: {plugin: ')") +
         HETERO_PACED_NET_PLUGIN + R"(', name: paced_40}
    batchSizePerWorker: 8
    epochs: 1000
    maxSteps: 220
    optimizer: {name: SGD, learningRate: 0.05}
    seed: 11
  insight: {rules: [{name: NoisyNeighbour, action: Ignore}]}
  roles:
  - {name: head, type: Head}
  - {name: cpu, type: CPUWorker, replicas: 2}
  - {name: gpu, type: GPUWorker, replicas: 1, gpusPerReplica: 0}
)";
}

std::vector<json> FindingsOf(const json& report) {
  std::vector<json> active;
  for (const json& finding : report.value("findings", json::array())) {
    if (finding.value("active", true)) active.push_back(finding);
  }
  return active;
}

void ExpectFoundAndHelped(const Cause& cause) {
  constexpr double kQuiet = 0.2;
  if (const double busy = cause.quiet ? BusyShareOfMachine() : 0; busy > kQuiet) {
    GTEST_SKIP() << "others use " << 100 * busy << " % of this machine's cores";
  }
  const OnCores cores(cause.all_cores ? OnCores::kAll : 2);
  const json before = cause.run(cause.job, {});
  if (cause.symptom) cause.symptom(before);
  const std::vector<json> findings = FindingsOf(before);
  ASSERT_FALSE(findings.empty()) << before.dump(1);
  const json& first = findings[0];
  ASSERT_EQ(first.value("rule", ""), cause.rule) << json(findings).dump(1);
  std::cout << first.value("message", "") << "\n  " << first.value("remedy", "") << std::endl;
  if (cause.member != "*") {
    EXPECT_EQ(first.value("member", ""), cause.member) << first;
  }
  EXPECT_EQ(first.value("field", ""), cause.field) << first;
  const json after =
      cause.outside ? cause.run(cause.cured, {}) : cause.run(cause.job, Remedy(cause, first));
  // A store may still be what limits, but there is something else to do about it.
  for (const json& finding : FindingsOf(after)) {
    EXPECT_FALSE(finding.value("rule", "") == cause.rule &&
                 finding.value("field", "") == cause.field)
        << "said again: " << finding;
  }
  ExpectMoved(cause, cause.gain.of(before), cause.gain.of(after));
}

void PrintTo(const Cause& cause, std::ostream* out) { *out << cause.name; }

}  // namespace hetero::testing
