#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/feed/safetensors.h"
#include "runtime/train/models/model.h"
#include "runtime/train/models/weights.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/train/golden_weights.h"

namespace hetero::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr api::ImageShape kSmall = {8, 8, 3};

std::string TrainingGolden(const std::string& name) {
  return testing::SourceDir() + "/tests/golden/training/" + name;
}

std::string Scratch(const std::string& name) { return ::testing::TempDir() + "/" + name; }

std::shared_ptr<Model> Open(const api::Model& model, const api::ImageShape& input = kSmall) {
  absl::StatusOr<std::shared_ptr<Model>> opened = OpenModel(model, 10, input, 1);
  EXPECT_TRUE(opened.ok()) << opened.status();
  return opened.ok() ? *opened : nullptr;
}

std::string Refused(const api::Model& model, const api::ImageShape& input = kSmall) {
  return std::string(OpenModel(model, 10, input, 1).status().message());
}

std::shared_ptr<Model> Filled(const std::string& name, const api::ImageShape& input) {
  const std::shared_ptr<Model> model = Open({.name = name}, input);
  FillWeights(*model);
  return model;
}

void ExpectSameTensors(const Model& a, const Model& b) {
  const auto compare = [](const auto& left, const auto& right) {
    ASSERT_EQ(left.size(), right.size());
    for (const auto& entry : left) {
      EXPECT_TRUE(torch::equal(entry.value(), right[entry.key()])) << entry.key();
    }
  };
  compare(a.named_parameters(), b.named_parameters());
  compare(a.named_buffers(), b.named_buffers());
}

TEST(WeightsTest, FilesOfPythonLoad) {
  const std::shared_ptr<Model> model =
      Open({.name = "mlp", .weights = "file://" + TrainingGolden("mlp_10_side_8.safetensors")});
  ASSERT_NE(model, nullptr);
  ExpectSameTensors(*model, *Filled("mlp", kSmall));
}

class WeightsRoundTrip : public ::testing::TestWithParam<std::string> {};

TEST_P(WeightsRoundTrip, SavedUnderTorchvisionsNamesAndLoadedBack) {
  const nlohmann::json golden =
      ReadGolden(GetParam() + (GetParam() == "vit_b_16" ? "_10_side_32.json" : "_10.json"));
  const std::shared_ptr<Model> model = Filled(GetParam(), {32, 32, 3});
  const std::string path = Scratch(GetParam() + ".safetensors");
  ASSERT_TRUE(SaveWeights(*model, path).ok());
  const auto file = feed::ReadSafetensors(path);
  ASSERT_TRUE(file.ok()) << file.status();
  size_t tensors = 0;
  for (const char* kind : {"parameters", "buffers"}) {
    for (const nlohmann::json& entry : golden[kind]) {
      const auto found = file->tensors.find(entry[0]);
      ASSERT_NE(found, file->tensors.end()) << entry[0];
      EXPECT_EQ(found->second.shape, entry[1].get<std::vector<int64_t>>());
      ++tensors;
    }
  }
  EXPECT_EQ(file->tensors.size(), tensors);
  const std::shared_ptr<Model> loaded =
      Open({.name = GetParam(), .weights = "file://" + path}, {32, 32, 3});
  ExpectSameTensors(*loaded, *model);
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Models, WeightsRoundTrip,
                         ::testing::Values("resnet18", "resnet50", "vit_b_16"));

// Rows before columns whatever the layout in memory: the first convolution's bytes in the file.
TEST(WeightsTest, ChannelsLastIsStoredRowMajor) {
  const std::shared_ptr<Model> model = Filled("resnet18", {32, 32, 3});
  const torch::Tensor weight = model->named_parameters()["conv1.weight"];
  ASSERT_FALSE(weight.is_contiguous());
  const std::string path = Scratch("layout.safetensors");
  ASSERT_TRUE(SaveWeights(*model, path).ok());
  const auto file = feed::ReadSafetensors(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto* values = reinterpret_cast<const float*>(file->tensors.at("conv1.weight").data.data());
  EXPECT_EQ(values[1], weight[0][0][0][1].item<float>());
  EXPECT_EQ(values[7], weight[0][0][1][0].item<float>());
  std::filesystem::remove(path);
}

TEST(WeightsTest, EveryDifferenceIsNamedAndNothingReplaced) {
  const std::string weights = "file://" + TrainingGolden("mlp_10_side_8.safetensors");
  EXPECT_THAT(
      Refused({.name = "mlp", .weights = weights}, {4, 4, 3}),
      AllOf(StartsWith("spec.training.model.weights: "),
            HasSubstr("\"1.weight\" is [256, 192] in the file and [256, 48] in the model")));
  EXPECT_THAT(Refused({.name = "resnet18", .weights = weights}),
              AllOf(HasSubstr("\"conv1.weight\" [64, 3, 7, 7] is missing in the file"),
                    HasSubstr("more. Names and shapes must be those of the model")));
  EXPECT_THAT(Refused({.name = "mlp", .weights = "file:///nowhere/w.safetensors"}),
              HasSubstr("/nowhere/w.safetensors"));
  const std::shared_ptr<Model> model = Filled("mlp", {4, 4, 3});
  EXPECT_FALSE(LoadWeights(*model, TrainingGolden("mlp_10_side_8.safetensors")).ok());
  ExpectSameTensors(*model, *Filled("mlp", {4, 4, 3}));
}

api::Model Script(const std::string& file) {
  return {.torch_script = "file://" + TrainingGolden(file)};
}

TEST(ScriptModelTest, ScriptedLayersFollowTheMode) {
  const std::shared_ptr<Model> model = Open(Script("scripted.pt"));
  ASSERT_NE(model, nullptr);
  EXPECT_TRUE(model->has_batch_norm());
  EXPECT_TRUE(model->channels_last());
  EXPECT_TRUE(model->named_parameters().contains("head.weight"));
  EXPECT_TRUE(model->named_buffers().contains("norm.running_mean"));
  const torch::Tensor images = GoldenPicture(2, 3, 8);
  torch::NoGradGuard no_grad;
  model->eval();
  EXPECT_TRUE(torch::equal(model->forward(images), model->forward(images)));
  const torch::Tensor before = model->named_buffers()["norm.running_mean"].clone();
  model->train();
  EXPECT_FALSE(torch::equal(model->forward(images), model->forward(images)));
  EXPECT_FALSE(torch::equal(model->named_buffers()["norm.running_mean"], before));
}

TEST(ScriptModelTest, TracedModulesAreRefusedWhereTheModeMatters) {
  EXPECT_THAT(Refused(Script("traced_batch_norm.pt")),
              AllOf(StartsWith("spec.training.model.torchScript: "),
                    HasSubstr("the module was traced. Save torch.jit.script(model) instead")));
  EXPECT_THAT(Refused(Script("traced_dropout.pt")), HasSubstr("aten::dropout does not follow"));
  EXPECT_NE(Open(Script("traced_plain.pt")), nullptr);
}

TEST(ScriptModelTest, OtherShapesAndFilesAreRefused) {
  EXPECT_THAT(std::string(OpenModel(Script("scripted.pt"), 7, kSmall, 1).status().message()),
              HasSubstr("gives [2, 10] instead of [2, 7]"));
  EXPECT_THAT(Refused(Script("scripted.pt"), {9, 9, 3}), HasSubstr("fails for pictures of 9 x 9"));
  EXPECT_THAT(Refused(Script("mlp_10_side_8.safetensors")), HasSubstr("cannot be loaded"));
}

TEST(PluginModelTest, TheExampleTrains) {
  const std::shared_ptr<Model> model = Open({.name = "tiny_net", .plugin = HETERO_EXAMPLE_PLUGIN});
  ASSERT_NE(model, nullptr);
  EXPECT_FALSE(model->named_parameters()["first.weight"].is_contiguous());  // channels last
  const torch::Tensor output = model->forward(GoldenPicture(2, 3, 8));
  EXPECT_EQ(output.sizes(), (std::vector<int64_t>{2, 10}));
  output.sum().backward();
  EXPECT_GT(model->named_parameters()["first.weight"].grad().norm().item<double>(), 0);
}

TEST(PluginModelTest, SaysWhatIsWrongWithTheLibrary) {
  EXPECT_THAT(Refused({.name = "other", .plugin = HETERO_EXAMPLE_PLUGIN}),
              AllOf(HasSubstr("has no model \"other\""), HasSubstr("tiny_net")));
  EXPECT_THAT(Refused({.name = "a", .plugin = "/nowhere/model.so"}), HasSubstr("cannot be loaded"));
  EXPECT_THAT(Refused({.name = "a", .plugin = "libm.so.6"}),
              HasSubstr("does not export hetero_model_plugin"));
}

}  // namespace
}  // namespace hetero::train
