// Whole jobs in one process: head, CPU workers, and trainers with DDP over Gloo.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/integration/support/jobs.h"
#include "tests/integration/support/test_cluster.h"

namespace hetero {
namespace {

using testing::RunToReport;
using testing::SmallJob;
using testing::TestCluster;

TEST(Training, TwoRanksFollowOne) {
  const std::vector<std::string> common = {"dataset.samples=1000", "training.epochs=4",
                                           "training.maxSteps=50"};
  std::vector<std::string> one = common, two = common;
  one.insert(one.end(), {"roles.gpu.replicas=1", "training.batchSizePerWorker=64"});
  two.insert(two.end(), {"roles.gpu.replicas=2", "training.batchSizePerWorker=32"});
  const nlohmann::json single = RunToReport({.job = SmallJob(one)});
  TestCluster cluster({.job = SmallJob(two)});
  ASSERT_EQ(cluster.Wait().state(), v1::JobStatus::SUCCEEDED);
  const nlohmann::json pair = cluster.report();

  EXPECT_EQ(single["streamDigest"], pair["streamDigest"]);
  ASSERT_EQ(single["lossCurve"].size(), 50u);
  ASSERT_EQ(pair["lossCurve"].size(), 50u);
  double worst = 0;
  for (size_t i = 0; i < 50; ++i) {
    worst = std::max(worst, std::abs(single["lossCurve"][i]["loss"].get<double>() -
                                     pair["lossCurve"][i]["loss"].get<double>()));
  }
  EXPECT_LT(worst, 1e-4);
  std::cout << "largest difference of the loss over 50 steps: " << worst << "\n";

  const auto crcs = cluster.parameter_crcs();
  EXPECT_GE(crcs.size(), 6u);
  for (const auto& [key, crc] : crcs) {
    EXPECT_EQ(crc, crcs.at({0, key.second})) << "rank " << key.first << " epoch " << key.second;
  }
}

TEST(Training, StreamIsTheOneOfInputOnly) {
  EXPECT_EQ(RunToReport({.job = SmallJob()})["streamDigest"],
            RunToReport({.job = SmallJob(), .input_only = true})["streamDigest"]);
}

TEST(Training, LearnsAndEvaluatesEverySampleOnce) {
  const nlohmann::json report = RunToReport(
      {.job = SmallJob({"dataset.validation={uri: 'synthetic://', samples: 101, classes: 4, image: "
                        "{height: 16, width: 16, channels: 3}}",
                        "training.evaluation.everyEpochs=1", "training.epochs=4"})});
  ASSERT_EQ(report["evaluations"].size(), 4u);
  for (const nlohmann::json& evaluation : report["evaluations"]) {
    EXPECT_EQ(evaluation["samples"], 101);
  }
  EXPECT_GT(report["accuracy"].get<double>(), 0.9);
  EXPECT_EQ(report["steps"], 32);
  EXPECT_EQ(report["epochs"], 4);
  EXPECT_EQ(report["samplesConsumed"], 4 * 512);
}

TEST(Training, StopEndsAllRanksAndKeepsTheReport) {
  TestCluster cluster({.job = SmallJob({"training.epochs=100000"})});
  while (cluster.head().status().progress().step() < 3) {
    ASSERT_LE(cluster.head().status().state(), v1::JobStatus::RUNNING);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  cluster.head().Stop("test");
  EXPECT_EQ(cluster.Wait().state(), v1::JobStatus::STOPPED);
  EXPECT_EQ(cluster.report()["state"], "Stopped");
  EXPECT_GE(cluster.report()["steps"].get<int>(), 3);
  for (const auto& [rank, status] : cluster.rank_results()) {
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
  }
}

TEST(Training, PhasesSumToTheTimeOfTraining) {
  const nlohmann::json report = RunToReport({.job = SmallJob({"training.epochs=20"})});
  double sum = 0;
  for (const auto& [phase, seconds] : report["phaseSeconds"].items()) sum += seconds.get<double>();
  const double total = report["trainSeconds"].get<double>();
  EXPECT_NEAR(sum, total, 0.02 * total + 0.01);
}

}  // namespace
}  // namespace hetero
