#pragma once

#include <cstdint>

#include "runtime/train/gpu/portable.h"

namespace hetero::train::gpu {

// Pictures of one size on the device, uint8 [samples, height, width, channels].
struct PictureBatch {
  int64_t samples = 0;
  int height = 0, width = 0, channels = 0;

  HETERO_HOST_DEVICE int64_t bytes() const { return samples * height * width * channels; }
};

}  // namespace hetero::train::gpu
