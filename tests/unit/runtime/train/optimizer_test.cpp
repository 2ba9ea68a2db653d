#include "runtime/train/optimizer/optimizer.h"

#include <gtest/gtest.h>

namespace hetero::train {
namespace {

std::vector<torch::Tensor> MakeParameters() {
  torch::manual_seed(5);
  std::vector<torch::Tensor> parameters;
  parameters.push_back(torch::randn({16, 3, 3, 3}).contiguous(torch::MemoryFormat::ChannelsLast));
  parameters.push_back(torch::randn({16}));
  for (torch::Tensor& parameter : parameters) parameter.requires_grad_();
  return parameters;
}

std::vector<torch::Tensor> Copies(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> copies;
  for (const torch::Tensor& t : tensors) copies.push_back(t.detach().clone().requires_grad_());
  return copies;
}

void SetGradients(std::vector<torch::Tensor>& parameters, int64_t step) {
  torch::manual_seed(static_cast<uint64_t>(100 + step));
  for (torch::Tensor& parameter : parameters) {
    const torch::Tensor gradient = torch::randn(parameter.sizes());
    if (!parameter.grad().defined()) parameter.mutable_grad() = torch::zeros_like(parameter);
    parameter.mutable_grad().copy_(gradient);
  }
}

// LibTorch's own, with the options of ParametersWithoutAGradientWereTrained.
std::unique_ptr<torch::optim::Optimizer> ReferenceOf(api::OptimizerKind kind,
                                                     std::vector<torch::Tensor> parameters) {
  switch (kind) {
    case api::OptimizerKind::kSgd:
      return std::make_unique<torch::optim::SGD>(
          parameters, torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.1));
    case api::OptimizerKind::kAdam:
      return std::make_unique<torch::optim::Adam>(parameters,
                                                  torch::optim::AdamOptions(0.1).weight_decay(0.1));
    case api::OptimizerKind::kAdamW:
      return std::make_unique<torch::optim::AdamW>(
          parameters, torch::optim::AdamWOptions(0.1).weight_decay(0.1));
  }
  return nullptr;
}

// Ten steps with changing learning rates against LibTorch's own optimiser.
void ExpectSameUpdates(
    const api::Optimizer& options,
    const std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)>&
        make_reference) {
  std::vector<torch::Tensor> ours = MakeParameters(), theirs = Copies(ours);
  Optimizer optimizer(options, ours);
  std::unique_ptr<torch::optim::Optimizer> reference = make_reference(theirs);
  for (int64_t step = 0; step < 10; ++step) {
    const double learning_rate = 0.1 / static_cast<double>(step + 1);
    SetGradients(ours, step);
    SetGradients(theirs, step);
    optimizer.Step(learning_rate);
    for (auto& group : reference->param_groups()) group.options().set_lr(learning_rate);
    reference->step();
  }
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_LT((ours[i] - theirs[i]).abs().max().item<double>(), 1e-5);
  }
}

TEST(OptimizerTest, SgdIsLibTorchs) {
  for (double momentum : {0.0, 0.9}) {
    api::Optimizer options;
    options.momentum = momentum;
    options.weight_decay = 0.01;
    ExpectSameUpdates(options, [&](std::vector<torch::Tensor> parameters) {
      return std::make_unique<torch::optim::SGD>(
          parameters, torch::optim::SGDOptions(0.1).momentum(momentum).weight_decay(0.01));
    });
  }
}

TEST(OptimizerTest, AdamIsLibTorchs) {
  api::Optimizer options;
  options.name = api::OptimizerKind::kAdam;
  options.betas = {0.8, 0.99};
  options.weight_decay = 0.01;
  ExpectSameUpdates(options, [](std::vector<torch::Tensor> parameters) {
    return std::make_unique<torch::optim::Adam>(
        parameters, torch::optim::AdamOptions(0.1).betas({0.8, 0.99}).weight_decay(0.01));
  });
}

TEST(OptimizerTest, AdamWIsLibTorchs) {
  api::Optimizer options;
  options.name = api::OptimizerKind::kAdamW;
  options.weight_decay = 0.05;
  ExpectSameUpdates(options, [](std::vector<torch::Tensor> parameters) {
    return std::make_unique<torch::optim::AdamW>(
        parameters, torch::optim::AdamWOptions(0.1).weight_decay(0.05));
  });
}

TEST(OptimizerTest, ClipsLikeLibTorch) {
  std::vector<torch::Tensor> ours = MakeParameters(), theirs = Copies(ours);
  Optimizer optimizer({}, ours);
  SetGradients(ours, 1);
  SetGradients(theirs, 1);
  const double norm = optimizer.GradientNorm();
  EXPECT_NEAR(norm, torch::nn::utils::clip_grad_norm_(theirs, 0.5), 1e-4);
  optimizer.ClipGradients(norm, 0.5);
  EXPECT_NEAR(optimizer.GradientNorm(), 0.5, 1e-4);
  EXPECT_LT((ours[0].grad() - theirs[0].grad()).abs().max().item<double>(), 1e-6);
}

TEST(OptimizerTest, WithoutAnyGradientNothingMoves) {
  std::vector<torch::Tensor> parameters = MakeParameters();
  const torch::Tensor before = parameters[0].detach().clone();
  Optimizer optimizer({.weight_decay = 0.1}, parameters);
  SetGradients(parameters, 1);
  optimizer.DropGradients();
  EXPECT_FALSE(parameters[0].grad().defined());
  EXPECT_EQ(optimizer.GradientNorm(), 0);
  optimizer.ClipGradients(0, 1);
  optimizer.Step(0.1);
  EXPECT_TRUE(torch::equal(parameters[0], before));
}

// Zero gradients once let weight decay and moments act on them. The third parameter is frozen, the
// second has a gradient in the first half of the steps only.
TEST(OptimizerTest, ParametersWithoutAGradientWereTrained) {
  for (const api::OptimizerKind kind :
       {api::OptimizerKind::kSgd, api::OptimizerKind::kAdam, api::OptimizerKind::kAdamW}) {
    std::vector<torch::Tensor> ours = MakeParameters();
    ours.push_back(torch::ones({5}));
    std::vector<torch::Tensor> theirs = Copies(ours);
    theirs[2].requires_grad_(false);
    Optimizer optimizer({.name = kind, .learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.1},
                        ours);
    const std::unique_ptr<torch::optim::Optimizer> reference = ReferenceOf(kind, theirs);
    for (int64_t step = 0; step < 6; ++step) {
      optimizer.DropGradients();
      reference->zero_grad();
      for (std::vector<torch::Tensor>* parameters : {&ours, &theirs}) {
        torch::Tensor loss = (*parameters)[0].pow(2).sum();
        if (step < 3) loss = loss + (*parameters)[1].pow(3).sum();
        loss.backward();
      }
      optimizer.Step(0.1);
      reference->step();
    }
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_LT((ours[i] - theirs[i]).abs().max().item<double>(), 1e-5) << i;
    }
    EXPECT_TRUE(torch::equal(ours[2], torch::ones({5})));
  }
}

// Together with the next step's gradients they were in memory twice.
TEST(OptimizerTest, DroppedGradientsKeptTheirMemory) {
  for (const api::OptimizerKind kind :
       {api::OptimizerKind::kSgd, api::OptimizerKind::kAdam, api::OptimizerKind::kAdamW}) {
    std::vector<torch::Tensor> parameters = MakeParameters();
    Optimizer optimizer({.name = kind, .momentum = 0.9}, parameters);
    SetGradients(parameters, 1);
    optimizer.Step(0.1);
    std::vector<torch::Storage> memory;
    for (const torch::Tensor& parameter : parameters) memory.push_back(parameter.grad().storage());
    optimizer.DropGradients();
    for (const torch::Storage& storage : memory) EXPECT_EQ(storage.use_count(), 1u);
  }
}

// In buckets, whose memory is the same in each step.
TEST(OptimizerTest, GradientsThatLieElsewhereAreFound) {
  std::vector<torch::Tensor> ours = MakeParameters(), theirs = Copies(ours);
  Optimizer optimizer({.learning_rate = 0.1, .momentum = 0.9}, ours);
  torch::optim::SGD reference(theirs, torch::optim::SGDOptions(0.1).momentum(0.9));
  std::vector<torch::Tensor> buckets;
  for (int64_t step = 0; step < 6; ++step) {
    if (step % 2 == 0) buckets.clear();
    for (size_t i = 0; i < ours.size(); ++i) {
      if (step % 2 == 0) buckets.push_back(torch::empty_like(ours[i]).detach());
      ours[i].mutable_grad() = buckets[i].alias();
    }
    SetGradients(ours, step);
    SetGradients(theirs, step);
    optimizer.Step(0.1);
    reference.step();
    optimizer.DropGradients(Optimizer::Keeper::kBuckets);
  }
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_LT((ours[i] - theirs[i]).abs().max().item<double>(), 1e-5);
  }
}

TEST(OptimizerTest, GradientsAreClearedWhereTheyLie) {
  std::vector<torch::Tensor> parameters = MakeParameters();
  Optimizer optimizer({}, parameters);
  optimizer.ZeroGradients();
  EXPECT_FALSE(parameters[0].grad().defined());
  SetGradients(parameters, 1);
  parameters[1].mutable_grad().reset();
  const void* memory = parameters[0].grad().const_data_ptr();
  optimizer.ZeroGradients();
  EXPECT_EQ(parameters[0].grad().const_data_ptr(), memory);
  EXPECT_TRUE(torch::equal(parameters[0].grad(), torch::zeros({16, 3, 3, 3})));
  EXPECT_FALSE(parameters[1].grad().defined());
}

TEST(OptimizerTest, OneBadGradientMakesTheNormNotFinite) {
  std::vector<torch::Tensor> parameters = MakeParameters();
  Optimizer optimizer({}, parameters);
  SetGradients(parameters, 1);
  parameters[1].mutable_grad()[3] = std::nan("");
  EXPECT_FALSE(std::isfinite(optimizer.GradientNorm()));
}

}  // namespace
}  // namespace hetero::train
