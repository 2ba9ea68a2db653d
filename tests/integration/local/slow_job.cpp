#include "tests/integration/local/slow_job.h"

#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include "tests/integration/support/jobs.h"

namespace hetero::testing {
namespace {

constexpr std::chrono::seconds kPatience(120);

}  // namespace

std::vector<std::string> SlowJob(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {
      "--set", "roles.cpu.replicas=2",
      "--set", "dataset.samples=1024",
      "--set", "pipeline=[{op: Delay, milliseconds: 12}, {op: HorizontalFlip}, {op: Normalize}]",
      "--set", "runPolicy.maxRestarts=10"};
  for (const std::string& setting : more) {
    arguments.push_back("--set");
    arguments.push_back(setting);
  }
  return arguments;
}

const std::string& UndisturbedDigest() {
  static const std::string digest = [] {
    LocalRun run(SmallJobYaml(), SlowJob());
    const ProgramResult result = run.Wait(kPatience);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return run.report().value("streamDigest", "");
  }();
  return digest;
}

std::vector<int> NumbersInLog(const std::string& log, const std::string& text,
                              const std::string& field) {
  std::vector<int> numbers;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(field + "=");
    if (line.find(text) == std::string::npos || at == std::string::npos) continue;
    numbers.push_back(std::atoi(line.c_str() + at + field.size() + 1));
  }
  return numbers;
}

bool WaitForFirstStep(LocalRun& run, const std::string& name, int generation) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < end) {
    for (const int seen :
         NumbersInLog(run.log(name), "first step of the generation", "generation")) {
      if (seen >= generation) return true;
    }
    if (!run.program().running()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

nlohmann::json ExpectUndisturbedResult(LocalRun& run) {
  const ProgramResult result = run.Wait(kPatience);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  const nlohmann::json report = run.report();
  EXPECT_EQ(report.value("state", ""), "Succeeded") << result.output;
  EXPECT_EQ(report.value("streamDigest", ""), UndisturbedDigest());
  EXPECT_EQ(report.value("steps", 0), kSlowJobSteps);
  EXPECT_EQ(report.value("samplesConsumed", 0), kSlowJobSamples);
  return report;
}

}  // namespace hetero::testing
