// The whole training loop against Python eager: tests/golden/make_training_vectors.py trained the
// same models from the same weights on the same pictures for 100 steps.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/feed/safetensors.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/train/golden_optimizer.h"
#include "tests/unit/runtime/train/golden_samples.h"
#include "tests/unit/runtime/train/rank_runner.h"

namespace hetero::train {
namespace {

std::string Golden(const std::string& name) {
  return testing::SourceDir() + "/tests/golden/training/" + name;
}

api::Schedule ScheduleOf(const nlohmann::json& golden) {
  api::Schedule schedule;
  const std::string name = golden.value("schedule", "Constant");
  schedule.name = name == "Cosine" ? api::ScheduleKind::kCosine
                  : name == "Step" ? api::ScheduleKind::kStep
                                   : api::ScheduleKind::kConstant;
  schedule.warmup_steps = golden.value("warmup", 0);
  schedule.gamma = golden.value("gamma", 0.1);
  if (golden.contains("step_epochs")) schedule.step_epochs = golden["step_epochs"].get<int64_t>();
  schedule.min_learning_rate = golden.value("floor", 0.0);
  schedule.scale_learning_rate = api::LearningRateScaling::kLinearWithWorldSize;
  return schedule;
}

TestJob JobOf(const nlohmann::json& golden) {
  TestJob job;
  const int32_t ranks = golden.value("ranks", 1);
  const int32_t accumulation = golden.value("accumulation", 1);
  const std::string model = golden["model"];
  job.training = MakeTraining("mlp", golden["batch"].get<int32_t>() / ranks / accumulation, 100);
  job.training.gradient_accumulation_steps = accumulation;
  job.training.model =
      model == "mlp"
          ? api::Model{.name = "mlp", .weights = "file://" + Golden("mlp_10_side_8.safetensors")}
          : api::Model{.torch_script = "file://" + Golden(model)};
  job.training.optimizer = OptimizerOf(golden);
  job.training.schedule = ScheduleOf(golden);
  job.training.loss.label_smoothing = golden.value("label_smoothing", 0.0);
  if (golden.contains("clip")) job.training.gradient_clip_norm = golden["clip"].get<double>();
  const int32_t side = golden["side"];
  job.image = {side, side, 3};
  job.classes = golden["classes"];
  job.samples = golden["samples"];
  job.make_sample = [classes = job.classes](int64_t id, std::span<uint8_t> bytes) {
    GoldenSample(id, classes, bytes);
  };
  return job;
}

// Largest relative difference of the parameters' norms and first values.
double ParameterDifference(const feed::SafetensorsFile& file, const nlohmann::json& finals) {
  double worst = 0;
  for (const nlohmann::json& entry : finals) {
    const feed::Tensor& tensor = file.tensors.at(entry[0]);
    std::vector<float> values(tensor.data.size() / sizeof(float));
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
    double squares = 0;
    for (const float value : values) squares += double{value} * value;
    const double norm = entry[1];
    worst = std::max(worst, std::abs(std::sqrt(squares) - norm) / norm);
    const double typical = norm / std::sqrt(static_cast<double>(values.size()));
    for (size_t i = 0; i < entry[2].size(); ++i) {
      worst = std::max(worst, std::abs(values[i] - entry[2][i].get<double>()) / typical);
    }
  }
  return worst;
}

class LoopParity : public ::testing::TestWithParam<std::string> {};

TEST_P(LoopParity, LossAndParametersFollowPythonForAHundredSteps) {
  std::ifstream file(Golden("loop_" + GetParam() + ".json"));
  const nlohmann::json golden = nlohmann::json::parse(file);
  TestJob job = JobOf(golden);
  job.output_folder = ::testing::TempDir() + "/parity_" + GetParam();
  std::filesystem::create_directories(job.output_folder);
  const RankRecord record = RunRanks(job, golden.value("ranks", 1))[0];
  ASSERT_TRUE(record.status.ok()) << record.status;
  const auto losses = golden["losses"].get<std::vector<double>>();
  ASSERT_EQ(record.steps.size(), losses.size());
  double worst = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    worst = std::max(worst, std::abs(record.steps[i].loss - losses[i]) / losses[i]);
  }
  EXPECT_LT(worst, 1e-4);
  const auto weights = feed::ReadSafetensors(job.output_folder + "/model.safetensors");
  ASSERT_TRUE(weights.ok()) << weights.status();
  const double parameters = ParameterDifference(*weights, golden["finals"]);
  EXPECT_LT(parameters, 1e-4);
  std::cout << GetParam() << ": largest relative difference to Python over " << losses.size()
            << " steps: loss " << worst << ", parameters " << parameters << "\n";
  std::filesystem::remove_all(job.output_folder);
}

INSTANTIATE_TEST_SUITE_P(Cases, LoopParity,
                         ::testing::Values("sgd", "adam", "adamw_tail", "sgd_two_ranks",
                                           "script_vit"));

}  // namespace
}  // namespace hetero::train
