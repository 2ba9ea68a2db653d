// Weights for another number of classes, and layers that are not trained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/train/models/frozen_layers.h"
#include "runtime/train/models/model.h"
#include "runtime/train/models/named_tensors.h"
#include "runtime/train/models/tensor_names.h"
#include "runtime/train/models/weights.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/train/golden_weights.h"

namespace hetero::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr api::ImageShape kPicture = {32, 32, 3};

TEST(TensorNames, AModuleStandsForAllBelowIt) {
  EXPECT_TRUE(NamesTensor("fc", "fc.weight"));
  EXPECT_TRUE(NamesTensor("fc.weight", "fc.weight"));
  EXPECT_TRUE(NamesTensor("layer1", "layer1.0.bn1.bias"));
  EXPECT_TRUE(NamesTensor("layer1.*", "layer1.0.bn1.bias"));
  EXPECT_TRUE(NamesTensor("layer*.bn1", "layer1.0.bn1.bias"));
  EXPECT_TRUE(NamesTensor("*.bias", "layer1.0.bn1.bias"));
  EXPECT_TRUE(NamesTensor("*", "class_token"));
  EXPECT_FALSE(NamesTensor("layer1", "layer10.0.weight"));
  EXPECT_FALSE(NamesTensor("layer", "layer1.0.weight"));
  EXPECT_FALSE(NamesTensor("bias", "fc.bias"));
  EXPECT_FALSE(NamesTensor("fc.", "fc.bias"));
  EXPECT_FALSE(NamesTensor("fc.bias", "fc"));
}

std::string Message(const api::Model& model, int32_t classes) {
  return std::string(OpenModel(model, classes, kPicture, 1).status().message());
}

class FineTuning : public ::testing::Test {
 protected:
  FineTuning() {
    const std::shared_ptr<Model> ten = *MakeModel({"resnet18", 10, kPicture}, 7);
    FillWeights(*ten);
    EXPECT_TRUE(SaveWeights(*ten, path_).ok());
    for (const auto& [name, tensor] : CopyOf(ModelTensors(*ten))) saved_[name] = tensor;
  }

  const testing::TemporaryFolder folder_;
  const std::string path_ = folder_ / "ten.safetensors";
  api::Model spec_ = {.name = "resnet18", .weights = "file://" + path_};
  std::map<std::string, torch::Tensor> saved_;
};

TEST_F(FineTuning, ExcludedTensorsKeepTheirFirstValues) {
  spec_.exclude = {"fc"};
  const absl::StatusOr<std::shared_ptr<Model>> model = OpenModel(spec_, 3, kPicture, 1);
  ASSERT_TRUE(model.ok()) << model.status();
  const std::shared_ptr<Model> fresh = *MakeModel({"resnet18", 3, kPicture}, 1);
  std::map<std::string, torch::Tensor> initial;
  for (const auto& [name, tensor] : ModelTensors(*fresh)) initial[name] = tensor;
  for (const auto& [name, tensor] : ModelTensors(**model)) {
    const bool excluded = name.starts_with("fc.");
    EXPECT_TRUE(torch::equal(tensor, excluded ? initial[name] : saved_[name])) << name;
  }
}

// The file may lack what is excluded, or have more of it than the model.
TEST_F(FineTuning, ExcludedTensorsNeedNotBeThere) {
  spec_.exclude = {"fc.*", "layer4.1"};
  NamedTensors others;
  for (const auto& [name, tensor] : saved_) {
    if (!name.starts_with("fc.") && !name.starts_with("layer4.1."))
      others.emplace_back(name, tensor);
  }
  others.emplace_back("fc.extra.weight", torch::ones({5}));
  folder_.Write("ten.safetensors", TensorFileBytes(others, {}));
  EXPECT_EQ(Message(spec_, 3), "");
  spec_.exclude = {"fc"};
  EXPECT_THAT(Message(spec_, 3), AllOf(StartsWith("spec.training.model.weights: "),
                                       HasSubstr("\"layer4.1.bn1.bias\" [512] is missing")));
}

TEST_F(FineTuning, ErrorsNameTheEntryAndWhatThereIs) {
  EXPECT_THAT(Message(spec_, 3),
              AllOf(HasSubstr("\"fc.bias\" is [10] in the file and [3] in the model"),
                    HasSubstr("spec.training.model.exclude")));
  spec_.exclude = {"fc", "head"};
  EXPECT_EQ(
      Message(spec_, 3),
      "spec.training.model.exclude[1]: \"head\" names nothing in the model; it has conv1, bn1, "
      "layer1, layer2, layer3, layer4, fc, with names such as conv1.weight");
  spec_.exclude = {"fc"};
  spec_.freeze = {"layer1.*", "layer5.*"};
  EXPECT_THAT(Message(spec_, 3), StartsWith("spec.training.model.freeze[1]: \"layer5.*\" names "
                                            "nothing in the model; it has conv1, bn1"));
  spec_.freeze = {"*"};
  EXPECT_EQ(
      Message(spec_, 3),
      "spec.training.model.freeze: names all of the model's parameters; leave some to be trained");
}

TEST_F(FineTuning, FrozenLayersKeepTheirModeAndStatistics) {
  spec_.freeze = {"conv1", "bn1", "layer1.*", "layer2.0.bn1.bias"};
  const std::shared_ptr<Model> model = *OpenModel(spec_, 10, kPicture, 1);
  for (const auto& parameter : model->named_parameters()) {
    const std::string& name = parameter.key();
    const bool frozen = name.starts_with("conv1.") || name.starts_with("bn1.") ||
                        name.starts_with("layer1.") || name == "layer2.0.bn1.bias";
    EXPECT_EQ(parameter.value().requires_grad(), !frozen) << name;
  }
  TrainUnfrozen(*model);
  model->forward(GoldenPicture(4, 3, 32)).sum().backward();
  for (const auto& [name, tensor] : ModelTensors(*model)) {
    if (name.ends_with("num_batches_tracked")) continue;
    // Of layer2.0.bn1 only the shift is frozen: the layer is trained.
    const bool frozen_layer = name.starts_with("bn1.") || name.starts_with("layer1.");
    const bool statistics = name.find(".running_") != std::string::npos;
    EXPECT_EQ(torch::equal(tensor, saved_[name]), frozen_layer || !statistics) << name;
  }
  for (const auto& parameter : model->named_parameters()) {
    EXPECT_EQ(parameter.value().grad().defined(), parameter.value().requires_grad());
  }
}

}  // namespace
}  // namespace hetero::train
