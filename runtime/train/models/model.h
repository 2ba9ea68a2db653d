#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "hetero/model.h"

namespace hetero::train {

struct ModelOptions {
  std::string name;       // mlp, resnet18, resnet50, vit_b_16
  int32_t classes = 0;    // > 0
  api::ImageShape input;  // of one sample
};

// Builds the model with torchvision's initialisation, drawn from `seed` alone. kInvalidArgument
// names an unknown model, or a picture size that the model cannot take. Safe from any thread:
// models are built one after the other, since LibTorch's default generator belongs to the process.
absl::StatusOr<std::shared_ptr<Model>> MakeModel(const ModelOptions& options, int64_t seed);

// Whatever `spec.training.model` describes: a built-in model, a TorchScript file or a plugin's,
// with the weights it names. Errors begin with the field. Safe from any thread, as MakeModel.
absl::StatusOr<std::shared_ptr<Model>> OpenModel(const api::Model& model, int32_t classes,
                                                 const api::ImageShape& input, int64_t seed);

}  // namespace hetero::train
