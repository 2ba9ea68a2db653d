#include "runtime/train/optimizer/learning_rate.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"

namespace hetero::train {
namespace {

api::ScheduleKind KindOf(const std::string& name) {
  if (name == "Step") return api::ScheduleKind::kStep;
  if (name == "Cosine") return api::ScheduleKind::kCosine;
  return api::ScheduleKind::kConstant;
}

TEST(LearningRateTest, FollowsTorchsSchedulers) {
  std::ifstream file(testing::SourceDir() + "/tests/golden/models/learning_rates.json");
  for (const nlohmann::json& table : nlohmann::json::parse(file)) {
    SCOPED_TRACE(table["schedule"].get<std::string>() + " warm-up " + table["warmup"].dump());
    LearningRateOptions options;
    options.schedule.name = KindOf(table["schedule"]);
    options.schedule.warmup_steps = table["warmup"];
    options.schedule.step_epochs = table["step_epochs"];
    options.schedule.gamma = table["gamma"];
    options.schedule.min_learning_rate = table["floor"];
    options.learning_rate = table["base"];
    options.total_steps = table["total"];
    options.steps_per_epoch = table["steps_per_epoch"];
    const std::vector<double> values = table["values"];
    for (size_t step = 0; step < values.size(); ++step) {
      EXPECT_NEAR(LearningRateAt(options, static_cast<int64_t>(step)), values[step], 1e-12)
          << "step " << step;
    }
  }
}

TEST(LearningRateTest, GrowsWithTheWorldWhenAsked) {
  LearningRateOptions options = {.learning_rate = 0.1, .world_size = 4, .total_steps = 10};
  EXPECT_DOUBLE_EQ(LearningRateAt(options, 0), 0.1);
  options.schedule.scale_learning_rate = api::LearningRateScaling::kLinearWithWorldSize;
  EXPECT_DOUBLE_EQ(LearningRateAt(options, 0), 0.4);
}

}  // namespace
}  // namespace hetero::train
