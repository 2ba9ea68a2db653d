#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "operator/api/hetero_training_job.h"

namespace hetero::train {

// A network that classifies images. Names and order of parameters and buffers are torchvision's, so
// that weights move between the two unchanged. Not thread-safe.
class Model : public torch::nn::Module {
 public:
  // `images` float32 [N, C, H, W]; returns logits [N, classes].
  virtual torch::Tensor forward(torch::Tensor images) = 0;
  // Whether training mode takes statistics over the batch, which one sample alone does not have.
  virtual bool has_batch_norm() const { return false; }
  // Whether images and four-dimensional parameters are best kept with channels last.
  virtual bool channels_last() const { return false; }
};

struct ModelOptions {
  std::string name;       // mlp, resnet18, resnet50, vit_b_16
  int32_t classes = 0;    // > 0
  api::ImageShape input;  // of one sample
};

// Builds the model with torchvision's initialisation, drawn from `seed` alone. kInvalidArgument
// names an unknown model, or a picture size that the model cannot take. Safe from any thread:
// models are built one after the other, since LibTorch's default generator belongs to the process.
absl::StatusOr<std::shared_ptr<Model>> MakeModel(const ModelOptions& options, int64_t seed);

}  // namespace hetero::train
