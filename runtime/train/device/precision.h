#pragma once

#include <torch/torch.h>

#include "api/hetero_training_job.h"

namespace hetero::train {

// While it lives, this thread's forward passes compute in the job's precision: with BF16 as
// torch.autocast does, matrix products and convolutions in bfloat16, parameters and losses in
// float32.
class PrecisionScope {
 public:
  PrecisionScope(api::Precision precision, torch::Device place);
  ~PrecisionScope();
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

 private:
  bool on_;
  torch::DeviceType type_;
};

}  // namespace hetero::train
