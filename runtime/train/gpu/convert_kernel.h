#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "runtime/train/gpu/convert_value.h"

namespace hetero::train::gpu {

// Converts `samples` pictures of `pixels` pixels, uint8 [samples, pixels, channels] on the device,
// to float32 or bfloat16 in the layout asked for. Every value is computed in float32 without a
// contracted multiply-add, so that float32 results are the CPU's to the bit; bfloat16 is rounded to
// nearest even. `channels` is at most kMaxChannels. Returns the launch's error.
cudaError_t ConvertPixels(const uint8_t* bytes, int64_t samples, int64_t pixels, int channels,
                          const PixelScale& scale, PixelLayout layout, float* out,
                          cudaStream_t stream);
cudaError_t ConvertPixelsToBfloat16(const uint8_t* bytes, int64_t samples, int64_t pixels,
                                    int channels, const PixelScale& scale, PixelLayout layout,
                                    void* out, cudaStream_t stream);

}  // namespace hetero::train::gpu
