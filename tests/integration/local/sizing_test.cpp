// What the report predicts, and what the launcher does about it, with real processes. The rates
// come from Delay, which sleeps, so that the number of cores does not limit them.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "tests/integration/support/jobs.h"
#include "tests/integration/support/program_run.h"

namespace hetero {
namespace {

using testing::LocalRun;
using testing::ProgramResult;
using testing::SmallJobYaml;

constexpr std::chrono::seconds kDeadline(120);

std::vector<std::string> Arguments(std::vector<std::string> overrides,
                                   std::vector<std::string> others = {}) {
  overrides.insert(overrides.end(), {"pipeline=[{op: Delay, milliseconds: 40}, {op: Normalize}]",
                                     "roles.gpu.replicas=1", "training.batchSizePerWorker=8"});
  std::vector<std::string> arguments = std::move(others);
  for (const std::string& change : overrides) {
    arguments.insert(arguments.end(), {"--set", change});
  }
  return arguments;
}

nlohmann::json Report(const std::vector<std::string>& arguments) {
  LocalRun run(SmallJobYaml(), arguments);
  const ProgramResult result = run.Wait(kDeadline);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  return run.report();
}

double Predicted(const nlohmann::json& report, int replicas) {
  for (const nlohmann::json& prediction : report["predictions"]) {
    if (prediction["replicas"] == replicas) return prediction["samplesPerSecond"];
  }
  ADD_FAILURE() << "no prediction for " << replicas << " replicas: " << report["predictions"];
  return 0;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

TEST(Sizing, AddingTheWorkersBringsWhatTheReportPredicted) {
  std::vector<double> errors;
  for (int repetition = 0; repetition < 3; ++repetition) {
    const nlohmann::json one = Report(Arguments({"training.maxSteps=80", "roles.cpu.replicas=1"}));
    EXPECT_EQ(one["verdict"].get<std::string>().substr(0, 11), "input-bound") << one["verdict"];
    for (const int replicas : {2, 3}) {
      const nlohmann::json more = Report(
          Arguments({"training.maxSteps=80", "roles.cpu.replicas=" + std::to_string(replicas)}));
      EXPECT_EQ(more["streamDigest"], one["streamDigest"]);
      const double predicted = Predicted(one, replicas);
      const double measured = more["samplesPerSecond"];
      std::cout << "1 worker " << one["samplesPerSecond"] << " samples/s; " << replicas
                << " predicted " << predicted << ", measured " << measured << "\n";
      errors.push_back(std::abs(predicted / measured - 1));
    }
  }
  std::cout << "median error " << 100 * Median(errors) << " %\n";
  EXPECT_LE(Median(errors), 0.1);
}

TEST(Sizing, TheProbedCeilingIsReportedAndChangesNothing) {
  const nlohmann::json plain = Report(Arguments({"training.maxSteps=8"}));
  const nlohmann::json probed = Report(Arguments({"training.maxSteps=8"}, {"--ceiling-probe"}));
  EXPECT_EQ(probed["streamDigest"], plain["streamDigest"]);
  EXPECT_EQ(probed["loss"], plain["loss"]);
  EXPECT_EQ(plain["ceilingSource"], "Steps");
  EXPECT_EQ(probed["ceilingSource"], "Probe");
  EXPECT_GT(probed["ceilingSamplesPerSecond"].get<double>(),
            probed["samplesPerSecond"].get<double>());
}

TEST(Sizing, WaitsAreExplainedAndTimeLinesSumUp) {
  const nlohmann::json report = Report(Arguments({"training.maxSteps=30"}));
  double sum = 0;
  for (const auto& [cause, seconds] : report["waitSeconds"].items()) sum += seconds.get<double>();
  const double wait = report["phaseSeconds"]["wait"];
  EXPECT_NEAR(sum, wait, 0.02 * wait);
  EXPECT_GT(report["waitSeconds"]["workers"].get<double>(), 0.5 * wait) << report["waitSeconds"];
  ASSERT_EQ(report["timeLines"].size(), 1u);
  for (const nlohmann::json& point : report["timeLines"][0]["points"]) {
    double phases = 0;
    for (const auto& [phase, seconds] : point["phaseSeconds"].items()) {
      phases += seconds.get<double>();
    }
    EXPECT_NEAR(phases, point["seconds"].get<double>(),
                0.02 * point["seconds"].get<double>() + 0.01);
  }
}

TEST(Sizing, AutoscalingStartsTheWorkersThatAreMissing) {
  LocalRun run(SmallJobYaml(),
               Arguments({"training.epochs=1000000", "autoscaling=Enabled", "roles.cpu.replicas=1",
                          "roles.cpu.minReplicas=1", "roles.cpu.maxReplicas=3"}));
  // They start together: either may be the first to join.
  for (const char* started : {"cpu-1", "cpu-2"}) {
    EXPECT_TRUE(run.WaitForLog(started, "serving", std::chrono::seconds(60)));
    EXPECT_TRUE(run.WaitForLog("gpu-0", started, std::chrono::seconds(60)));
  }
  run.program().Signal(SIGINT);
  EXPECT_EQ(run.Wait(kDeadline).exit_code, 130);
  EXPECT_EQ(run.report()["workers"].size(), 4u);
  EXPECT_EQ(run.report()["faults"].size(), 0u) << run.report()["faults"];
}

TEST(Sizing, AutoscalingEndsTheWorkersThatNobodyNeeds) {
  // The trainer is the slow one: eight samples need 5 ms, whoever prepares them.
  LocalRun run(SmallJobYaml(),
               {"--set", "training.epochs=1000000", "--set", "autoscaling=Enabled", "--set",
                "roles.gpu.replicas=1", "--set", "roles.cpu.replicas=3", "--set",
                "roles.cpu.minReplicas=1", "--set", "roles.cpu.maxReplicas=3", "--set",
                "training.model.name=resnet18", "--set", "training.batchSizePerWorker=32"});
  EXPECT_TRUE(run.WaitForLog("cpu-2", "serving"));
  EXPECT_TRUE(run.WaitForLog("gpu-0", "CPU worker left", std::chrono::seconds(90)));
  run.program().Signal(SIGINT);
  EXPECT_EQ(run.Wait(kDeadline).exit_code, 130);
  EXPECT_EQ(run.report()["faults"].size(), 0u) << run.report()["faults"];
}

}  // namespace
}  // namespace hetero
