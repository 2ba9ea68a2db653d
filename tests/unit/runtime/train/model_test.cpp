#include "runtime/train/models/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/train/models/loss.h"
#include "runtime/train/models/parameter_crc.h"
#include "tests/unit/runtime/train/golden_weights.h"

namespace hetero::train {
namespace {

using ::testing::HasSubstr;

using Layout = std::vector<std::pair<std::string, std::vector<int64_t>>>;

Layout LayoutOf(const torch::OrderedDict<std::string, torch::Tensor>& tensors) {
  Layout layout;
  for (const auto& entry : tensors) layout.emplace_back(entry.key(), entry.value().sizes().vec());
  return layout;
}

struct ModelCase {
  std::string golden;
  ModelOptions options;
};

std::shared_ptr<Model> Make(const ModelOptions& options, int64_t seed = 1) {
  absl::StatusOr<std::shared_ptr<Model>> model = MakeModel(options, seed);
  EXPECT_TRUE(model.ok()) << model.status();
  return *model;
}

class LayoutTest : public ::testing::TestWithParam<ModelCase> {};

TEST_P(LayoutTest, NamesShapesAndOrderAreTorchvisions) {
  const nlohmann::json golden = ReadGolden(GetParam().golden);
  const std::shared_ptr<Model> model = Make(GetParam().options);
  EXPECT_EQ(LayoutOf(model->named_parameters()), golden["parameters"].get<Layout>());
  EXPECT_EQ(LayoutOf(model->named_buffers()), golden["buffers"].get<Layout>());
  int64_t count = 0;
  for (const torch::Tensor& parameter : model->parameters()) count += parameter.numel();
  EXPECT_EQ(count, golden["count"].get<int64_t>());
}

INSTANTIATE_TEST_SUITE_P(
    Models, LayoutTest,
    ::testing::Values(ModelCase{"resnet18_1000.json", {"resnet18", 1000, {224, 224, 3}}},
                      ModelCase{"vit_b_16_1000.json", {"vit_b_16", 1000, {224, 224, 3}}}));

class ResultTest : public ::testing::TestWithParam<ModelCase> {};

void ExpectNear(const torch::Tensor& got, const nlohmann::json& want, double tolerance,
                const std::string& what) {
  const auto values = want.get<std::vector<double>>();
  ASSERT_EQ(got.numel(), static_cast<int64_t>(values.size())) << what;
  const torch::Tensor flat = got.detach().contiguous().flatten();
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(flat[static_cast<int64_t>(i)].item<double>(), values[i], tolerance)
        << what << " [" << i << "]";
  }
}

TEST_P(ResultTest, OutputsGradientsAndStatisticsAreTorchvisions) {
  const nlohmann::json golden = ReadGolden(GetParam().golden);
  const ModelOptions& options = GetParam().options;
  const std::shared_ptr<Model> model = Make(options);
  EXPECT_EQ(LayoutOf(model->named_parameters()), golden["parameters"].get<Layout>());
  FillWeights(*model);
  // As in the script: batch norm would magnify float32's rounding.
  const auto type = model->has_batch_norm() ? torch::kFloat64 : torch::kFloat32;
  const double tolerance = model->has_batch_norm() ? 1e-6 : 1e-4;
  model->to(type);
  const auto samples = static_cast<int64_t>(golden["evaluation_output"].size()) / options.classes;
  const torch::Tensor images = GoldenPicture(samples, 3, options.input.height).to(type);
  model->eval();
  {
    torch::NoGradGuard no_grad;
    ExpectNear(model->forward(images), golden["evaluation_output"], tolerance, "evaluation");
  }
  model->train();
  const torch::Tensor output = model->forward(images);
  ExpectNear(output, golden["training_output"], tolerance, "training");
  const torch::Tensor labels = torch::arange(samples) % options.classes;
  const torch::Tensor loss = LossPerSample({.label_smoothing = 0.1}, output, labels).mean();
  EXPECT_NEAR(loss.item<double>(), golden["loss"].get<double>(), tolerance);
  loss.backward();
  const auto parameters = model->named_parameters();
  for (const auto& [name, norm] :
       golden["gradient_norms"].get<std::vector<std::pair<std::string, double>>>()) {
    EXPECT_NEAR(parameters[name].grad().to(torch::kFloat64).norm().item<double>(), norm,
                tolerance * (1 + norm))
        << name;
  }
  const auto buffers = model->named_buffers();
  for (const nlohmann::json& entry : golden["statistics"]) {
    const std::string name = entry[0];
    ExpectNear(buffers[name].slice(0, 0, 4), entry[1], tolerance, name);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, ResultTest,
    ::testing::Values(ModelCase{"mlp_10_side_8.json", {"mlp", 10, {8, 8, 3}}},
                      ModelCase{"resnet18_10.json", {"resnet18", 10, {32, 32, 3}}},
                      ModelCase{"resnet50_10.json", {"resnet50", 10, {32, 32, 3}}},
                      ModelCase{"vit_b_16_10_side_32.json", {"vit_b_16", 10, {32, 32, 3}}}));

TEST(ModelTest, InitialWeightsAreAFunctionOfTheSeed) {
  const ModelOptions options = {"resnet18", 10, {28, 28, 1}};
  EXPECT_EQ(ParameterCrc(*Make(options, 3)), ParameterCrc(*Make(options, 3)));
  EXPECT_NE(ParameterCrc(*Make(options, 3)), ParameterCrc(*Make(options, 4)));
}

TEST(ModelTest, ResNetConvolutionsStartWithKaimingNormalOverFanOut) {
  const std::shared_ptr<Model> model = Make({"resnet18", 10, {224, 224, 3}});
  const auto parameters = model->named_parameters();
  const double want = std::sqrt(2.0 / (512 * 3 * 3));
  EXPECT_NEAR(parameters["layer4.1.conv2.weight"].std().item<double>(), want, 0.01 * want);
  EXPECT_EQ(parameters["layer4.1.bn2.weight"].min().item<double>(), 1);
}

TEST(ModelTest, RefusesWhatItCannotBuild) {
  const auto message = [](const ModelOptions& options) {
    return std::string(MakeModel(options, 1).status().message());
  };
  EXPECT_THAT(message({"resnet99", 10, {32, 32, 3}}), HasSubstr("resnet99"));
  EXPECT_THAT(message({"vit_b_16", 10, {30, 30, 3}}), HasSubstr("multiple of 16"));
  EXPECT_THAT(message({"mlp", 0, {8, 8, 3}}), HasSubstr("classes"));
  EXPECT_THAT(message({"mlp", 10, {0, 0, 3}}), HasSubstr("fixed size"));
}

}  // namespace
}  // namespace hetero::train
