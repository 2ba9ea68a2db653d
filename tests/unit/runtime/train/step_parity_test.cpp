// Models of our own, loss and optimiser against Python eager, step by step: what
// tests/golden/make_training_vectors.py trained for 100 steps. In float32 a model with batch norm
// would not follow: two layouts of PyTorch itself drift apart there (docs/training.md), so those
// compute in float64. ResNet-50's steps on eight pictures multiply even that rounding, by up to a
// thousand each, and how a processor rounds is not the same everywhere: what its first steps agree
// in, a later one need not.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>

#include "runtime/train/models/frozen_layers.h"
#include "runtime/train/models/loss.h"
#include "runtime/train/models/named_tensors.h"
#include "runtime/train/models/vit.h"
#include "runtime/train/optimizer/learning_rate.h"
#include "runtime/train/optimizer/optimizer.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/train/golden_optimizer.h"
#include "tests/unit/runtime/train/golden_samples.h"
#include "tests/unit/runtime/train/golden_weights.h"

namespace hetero::train {
namespace {

struct StepCase {
  std::string name;
  torch::ScalarType type;
  double first;       // the largest relative difference of the first step's loss
  double growth;      // and how many times larger it may be with each step
  double parameters;  // of a parameter's norm after the last step
};

std::shared_ptr<Model> ModelOf(const std::string& name, const ModelOptions& options) {
  if (name == "small_vit") {
    return MakeVisionTransformer(
        options, {.patch = 16, .layers = 2, .heads = 4, .width = 64, .mlp_width = 128});
  }
  return *MakeModel({name.substr(0, name.find('_')), options.classes, options.input}, 1);
}

LearningRateOptions LearningRateOf(const nlohmann::json& golden) {
  LearningRateOptions options;
  if (golden.value("schedule", "") == "Cosine") options.schedule.name = api::ScheduleKind::kCosine;
  options.schedule.warmup_steps = golden.value("warmup", 0);
  options.learning_rate = golden["learning_rate"];
  options.total_steps = static_cast<int64_t>(golden["losses"].size());
  options.steps_per_epoch = 1;
  return options;
}

// The normalised pictures [count, 3, side, side] of the samples from `first` on, and their labels.
std::pair<torch::Tensor, torch::Tensor> BatchOf(const nlohmann::json& golden, int64_t first) {
  const int64_t count = golden["batch"], side = golden["side"];
  const int32_t classes = golden["classes"];
  torch::Tensor bytes = torch::empty({count, side, side, 3}, torch::kUInt8);
  for (int64_t i = 0; i < count; ++i) {
    const torch::Tensor sample = bytes[i];
    GoldenSample(first + i, classes,
                 {sample.data_ptr<uint8_t>(), static_cast<size_t>(sample.numel())});
  }
  const torch::Tensor images = (bytes.to(torch::kFloat32) / 255 - 0.5) / 0.25;
  return {images.permute({0, 3, 1, 2}), torch::arange(first, first + count) % classes};
}

class StepParity : public ::testing::TestWithParam<StepCase> {};

TEST_P(StepParity, LossAndParametersFollowPython) {
  std::ifstream file(testing::SourceDir() + "/tests/golden/training/step_" + GetParam().name +
                     ".json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  const int32_t side = golden["side"];
  const std::shared_ptr<Model> model =
      ModelOf(GetParam().name, {"", golden["classes"], {side, side, 3}});
  FillWeights(*model);
  model->to(GetParam().type);
  model->train();
  if (golden.contains("freeze")) {
    ASSERT_TRUE(FreezeLayers(*model, golden["freeze"]).ok());
    TrainUnfrozen(*model);
  }
  Optimizer optimizer(OptimizerOf(golden), model->parameters());
  const LearningRateOptions learning_rate = LearningRateOf(golden);
  const auto losses = golden["losses"].get<std::vector<double>>();
  const int64_t samples = golden["samples"], batch = golden["batch"];
  const double smoothing = golden.value("label_smoothing", 0.0);
  double worst = 0;
  for (size_t step = 0; step < losses.size(); ++step) {
    const auto [images, labels] = BatchOf(golden, static_cast<int64_t>(step) * batch % samples);
    optimizer.DropGradients();
    const torch::Tensor loss = LossPerSample({.label_smoothing = smoothing},
                                             model->forward(images.to(GetParam().type)), labels)
                                   .mean();
    loss.backward();
    if (golden.contains("clip")) {
      optimizer.ClipGradients(optimizer.GradientNorm(), golden["clip"].get<double>());
    }
    optimizer.Step(LearningRateAt(learning_rate, static_cast<int64_t>(step)));
    const double difference = std::abs(loss.item<double>() - losses[step]) / losses[step];
    EXPECT_LT(difference, GetParam().first * std::pow(GetParam().growth, step)) << "step " << step;
    worst = std::max(worst, difference);
  }
  std::map<std::string, torch::Tensor> tensors;
  for (const auto& [name, tensor] : ModelTensors(*model)) tensors[name] = tensor;
  double norms = 0;
  for (const nlohmann::json& entry : golden["finals"]) {
    ASSERT_TRUE(tensors.contains(entry[0])) << entry[0];
    const double norm = entry[1];
    norms = std::max(
        norms, std::abs(tensors[entry[0]].to(torch::kFloat64).norm().item<double>() - norm) / norm);
  }
  EXPECT_LT(norms, GetParam().parameters);
  std::cout << GetParam().name << ": largest relative difference to Python over " << losses.size()
            << " steps: loss " << worst << ", parameters " << norms << "\n";
}

INSTANTIATE_TEST_SUITE_P(
    Cases, StepParity,
    ::testing::Values(StepCase{"small_vit", torch::kFloat32, 1e-4, 1, 1e-4},
                      StepCase{"resnet18_float64", torch::kFloat64, 1e-9, 1, 1e-9},
                      StepCase{"resnet50_float64", torch::kFloat64, 1e-12, 100, 1e-6},
                      StepCase{"resnet18_frozen_float64", torch::kFloat64, 1e-9, 1, 1e-9}));

}  // namespace
}  // namespace hetero::train
