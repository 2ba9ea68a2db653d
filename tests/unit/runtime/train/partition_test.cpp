#include "runtime/train/pipeline_parallel/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/train/models/vit.h"
#include "runtime/train/state_sync.h"

namespace hetero::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const api::ImageShape kPicture = {32, 32, 3};

std::shared_ptr<Model> SmallVit() {
  torch::manual_seed(3);
  return MakeVisionTransformer({.name = "small", .classes = 5, .input = kPicture},
                               {.layers = 4, .heads = 2, .width = 16, .mlp_width = 32});
}

RankModel Cut(std::shared_ptr<Model> whole, int32_t stage, int32_t partitions) {
  absl::StatusOr<RankModel> part =
      CutModel(std::move(whole), {.partitions = partitions, .stage = stage}, kPicture);
  EXPECT_TRUE(part.ok()) << part.status();
  return *std::move(part);
}

TEST(BalancedCutsTest, TheHeaviestPartitionIsAsLightAsItCanBe) {
  EXPECT_THAT(BalancedCuts({1, 1, 1, 1}, 2), ElementsAre(0, 2, 4));
  EXPECT_THAT(BalancedCuts({1, 7, 7, 7, 7, 1}, 2), ElementsAre(0, 3, 6));
  EXPECT_THAT(BalancedCuts({9, 1, 1, 1}, 2), ElementsAre(0, 1, 4));
  EXPECT_THAT(BalancedCuts({5, 5, 5}, 3), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(BalancedCuts({2, 2}, 1), ElementsAre(0, 2));
  EXPECT_EQ(BalancedCuts({0, 0, 0, 8}, 3).size(), 4u);
}

TEST(PartitionTest, PartitionsOneAfterTheOtherAreTheModelAndShareNoParameter) {
  const torch::Tensor images = torch::rand({3, 3, 32, 32});
  const std::shared_ptr<Model> whole = SmallVit();
  const torch::Tensor want = whole->forward(images);
  for (const int32_t partitions : {2, 3, 6}) {
    torch::Tensor x = images;
    std::vector<std::string> names;
    int64_t elements = 0;
    for (int32_t stage = 0; stage < partitions; ++stage) {
      const RankModel part = Cut(SmallVit(), stage, partitions);
      if (stage > 0) {
        EXPECT_EQ(part.layout->activation, x.sizes().slice(1).vec());
      }
      x = part.model->forward(x);
      for (const auto& parameter : part.model->named_parameters()) {
        names.push_back(parameter.key());
        elements += parameter.value().numel();
        EXPECT_EQ(part.layout->partition.at(parameter.key()), stage);
        EXPECT_TRUE(parameter.value().requires_grad());
      }
    }
    EXPECT_TRUE(torch::allclose(x, want, 0, 1e-6));
    std::vector<std::string> expected;
    int64_t expected_elements = 0;
    for (const auto& parameter : whole->named_parameters()) {
      expected.push_back(parameter.key());
      expected_elements += parameter.value().numel();
    }
    EXPECT_THAT(names, ::testing::UnorderedElementsAreArray(expected));
    EXPECT_EQ(elements, expected_elements);
  }
}

TEST(PartitionTest, TheMemoryOfTheOthersIsGivenBack) {
  const std::shared_ptr<Model> whole = SmallVit();
  const RankModel part = Cut(whole, 1, 2);
  int64_t held = 0;
  for (const torch::Tensor& parameter : whole->parameters()) held += parameter.numel();
  int64_t own = 0;
  for (const torch::Tensor& parameter : part.model->parameters()) own += parameter.numel();
  EXPECT_EQ(held, own);
}

TEST(PartitionTest, ModeReachesTheLayers) {
  const std::shared_ptr<Model> whole = SmallVit();
  const RankModel part = Cut(whole, 0, 2);
  part.model->eval();
  EXPECT_FALSE(whole->is_training());
  part.model->train();
  EXPECT_TRUE(whole->is_training());
}

// A model with what a test says about it.
class OddModel : public Model {
 public:
  explicit OddModel(bool stray) {
    first_ = register_module("first", torch::nn::Linear(4, 4));
    second_ = register_module("second", torch::nn::Linear(4, 4));
    if (stray) register_parameter("stray", torch::zeros({1}));
  }
  torch::Tensor forward(torch::Tensor x) override { return second_(first_(x.flatten(1))); }
  std::vector<ModelStage> stages() override {
    const auto same = [](torch::Tensor x) { return x; };
    std::vector<torch::Tensor> both = first_->parameters();
    if (shared) both.push_back(second_->weight);
    return {{same, both}, {same, second_->parameters()}};
  }
  bool has_batch_norm() const override { return batch_norm; }
  bool shared = false;
  bool batch_norm = false;

 private:
  torch::nn::Linear first_{nullptr}, second_{nullptr};
};

std::string Refusal(std::shared_ptr<Model> model, int32_t partitions) {
  return std::string(
      CutModel(std::move(model), {.partitions = partitions}, kPicture).status().message());
}

TEST(PartitionTest, ModelsThatCannotBeCutAreRefusedWithTheReason) {
  const absl::StatusOr<std::shared_ptr<Model>> resnet =
      MakeModel({.name = "resnet18", .classes = 5, .input = kPicture}, 1);
  ASSERT_TRUE(resnet.ok());
  EXPECT_THAT(Refusal(*resnet, 2), HasSubstr("the model has no cut points; use 1"));
  EXPECT_THAT(Refusal(SmallVit(), 7), HasSubstr("into 6 partitions at most, not into 7"));
  EXPECT_THAT(Refusal(std::make_shared<OddModel>(true), 2),
              HasSubstr("parameter stray belongs to no layer"));
  auto model = std::make_shared<OddModel>(false);
  model->shared = true;
  EXPECT_THAT(Refusal(model, 2), HasSubstr("share a parameter"));
  model->shared = false;
  model->batch_norm = true;
  EXPECT_THAT(Refusal(model, 2), HasSubstr("statistics over batches"));
}

TEST(NewestCommonStepTest, EveryPartitionMustBeHeldAtThatStep) {
  EXPECT_EQ(NewestCommonStep({4, 5, 5}, 1), 5);
  EXPECT_EQ(NewestCommonStep({kNoState, kNoState}, 1), kNoState);
  EXPECT_EQ(NewestCommonStep({4, kNoState}, 2), kNoState);
  EXPECT_EQ(NewestCommonStep({4, kNoState, kNoState, 4}, 2), 4);
  EXPECT_EQ(NewestCommonStep({5, 4, 4, kNoState}, 2), 4);
  EXPECT_EQ(NewestCommonStep({5, 4, 4, 5}, 2), 5);
  EXPECT_EQ(NewestCommonStep({5, 4, kNoState, kNoState}, 2), kNoState);
}

}  // namespace
}  // namespace hetero::train
