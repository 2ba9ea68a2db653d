#pragma once

#include <torch/torch.h>

#include "api/hetero_training_job.h"

namespace hetero::train {

// Cross entropy of each sample, float32 [N], as
// torch.nn.functional.cross_entropy(reduction="none").
inline torch::Tensor LossPerSample(const api::Loss& loss, const torch::Tensor& logits,
                                   const torch::Tensor& labels) {
  namespace F = torch::nn::functional;
  return F::cross_entropy(
      logits, labels,
      F::CrossEntropyFuncOptions().reduction(torch::kNone).label_smoothing(loss.label_smoothing));
}

}  // namespace hetero::train
