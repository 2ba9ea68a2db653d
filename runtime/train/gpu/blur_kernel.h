#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "runtime/train/gpu/picture_batch.h"

namespace hetero::train::gpu {

// The integers of pipeline::BlurWithWeights, to the bit: an operator may move to the GPU only as
// the same function. `weights` holds for each sample its own half kernel of GaussianWeights(),
// uint16 [samples, radius + 1], on the device; both edges exceed `radius`. `between` is scratch for
// one uint16 per value. `in` and `out` may be the same.
cudaError_t Blur(const uint8_t* in, const PictureBatch& batch, const uint16_t* weights, int radius,
                 uint16_t* between, uint8_t* out, cudaStream_t stream);

}  // namespace hetero::train::gpu
