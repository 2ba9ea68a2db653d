// What a job leaves for the next one, and for TensorBoard.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "tests/integration/support/jobs.h"
#include "tests/integration/support/program_run.h"

namespace hetero {
namespace {

using testing::LocalRun;
using testing::ProgramResult;
using testing::SmallJobYaml;

constexpr std::chrono::seconds kDeadline(300);

double FirstLoss(const LocalRun& run) {
  return run.report()["lossCurve"].at(0)["loss"].get<double>();
}
double LastLoss(const LocalRun& run) {
  return run.report()["lossCurve"].back()["loss"].get<double>();
}

TEST(LocalWeights, TheNextJobGoesOnFromThem) {
  LocalRun first(SmallJobYaml(),
                 {"--set", "training.epochs=8", "--set", "training.gradientAccumulationSteps=2"});
  ASSERT_EQ(first.Wait(kDeadline).exit_code, 0);
  const std::string weights = first.output() + "/model.safetensors";
  ASSERT_TRUE(std::filesystem::exists(weights));
  ASSERT_TRUE(std::filesystem::exists(first.output() + "/tensorboard"));
  EXPECT_FALSE(std::filesystem::is_empty(first.output() + "/tensorboard"));
  EXPECT_EQ(first.report()["skippedSteps"], 0);

  LocalRun second(SmallJobYaml(), {"--set", "training.model.weights=file://" + weights});
  ASSERT_EQ(second.Wait(kDeadline).exit_code, 0);
  EXPECT_LT(LastLoss(first), 0.8 * FirstLoss(first));
  EXPECT_LT(FirstLoss(second), 0.8 * FirstLoss(first));
}

TEST(LocalWeights, AnotherModelsWeightsEndTheJobWithTheDifference) {
  LocalRun first(SmallJobYaml(), {"--set", "training.maxSteps=1"});
  ASSERT_EQ(first.Wait(kDeadline).exit_code, 0);
  LocalRun second(SmallJobYaml(), {"--set", "training.model={name: resnet18, weights: 'file://" +
                                                first.output() + "/model.safetensors'}"});
  const ProgramResult result = second.Wait(kDeadline);
  EXPECT_EQ(result.exit_code, 1) << result.output;
  const std::string message = second.report()["message"];
  EXPECT_NE(message.find("\"conv1.weight\" [64, 3, 7, 7] is missing in the file"),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace hetero
