#pragma once

#include <torch/torch.h>

#include <functional>
#include <vector>

namespace hetero::train {

// A piece of a model that may run on another rank than the next one. One stage after the other on
// the images gives what Model::forward gives.
struct ModelStage {
  std::function<torch::Tensor(torch::Tensor)> forward;
  std::vector<torch::Tensor> parameters;
};

// A network that classifies images: what the training loop knows of built-in models, TorchScript
// files and plugins alike. Names and order of parameters and buffers are those that weights are
// stored under; built-in models have torchvision's. Not thread-safe.
class Model : public torch::nn::Module {
 public:
  // `images` float32 [N, C, H, W]; returns logits [N, classes].
  virtual torch::Tensor forward(torch::Tensor images) = 0;
  // Whether training mode takes statistics over the batch, which one sample alone does not have.
  virtual bool has_batch_norm() const { return false; }
  // Whether images and four-dimensional parameters are best kept with channels last.
  virtual bool channels_last() const { return false; }
  // The layers in the order in which data passes them, for cutting the model into partitions.
  // Empty: the model has no cut points.
  virtual std::vector<ModelStage> stages() { return {}; }
};

}  // namespace hetero::train
