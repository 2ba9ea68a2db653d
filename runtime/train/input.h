#pragma once

#include <torch/torch.h>

#include "runtime/feed/batch.h"
#include "runtime/pipeline/pipeline.h"

namespace hetero::train {

// Turns the bytes of batches into what a model eats. Immutable and safe from any thread.
class InputConverter {
 public:
  // `channels_last`: memory layout of the images, which costs nothing because the bytes already
  // have it.
  InputConverter(const pipeline::TensorConversion& conversion, int32_t channels,
                 bool channels_last);

  // float32 [count, C, H, W] of the samples [first, first + count).
  torch::Tensor Images(const feed::Batch& batch, int64_t first, int64_t count) const;
  // int64 [count].
  torch::Tensor Labels(const feed::Batch& batch, int64_t first, int64_t count) const;

 private:
  bool channels_last_;
  bool identity_;
  torch::Tensor scale_;  // float32 [C]: x * scale + shift
  torch::Tensor shift_;
};

}  // namespace hetero::train
