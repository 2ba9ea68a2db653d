#pragma once

#include <torch/torch.h>

#include "runtime/feed/wire/batch.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/train/device/device.h"

namespace hetero::train {

// Turns the bytes of batches into what a model eats, on the device where it is. Belongs to one
// thread.
class InputConverter {
 public:
  // `channels_last`: memory layout of the images, which costs nothing because the bytes already
  // have it.
  // `device` outlives this.
  InputConverter(const pipeline::TensorConversion& conversion, int32_t channels, bool channels_last,
                 Device& device);

  torch::Device place() const { return device_.place(); }

  // float32 [count, C, H, W] of the samples [first, first + count).
  torch::Tensor Images(const feed::Batch& batch, int64_t first, int64_t count) const;
  // int64 [count].
  torch::Tensor Labels(const feed::Batch& batch, int64_t first, int64_t count) const;

 private:
  Device& device_;
  PixelFormat format_;
};

}  // namespace hetero::train
