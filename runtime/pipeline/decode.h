#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "runtime/pipeline/image.h"

namespace hetero::pipeline {

// Decode an encoded picture into uint8 RGB (always three channels), with the same bytes on every
// machine for one version of the library. kDataLoss carries the library's message: not such a file,
// truncated, corrupt, or larger than kMaxPixels. Orientation and colour profiles are ignored, as
// torchvision's decode_image does.

// libjpeg-turbo with the accurate integer IDCT and smooth chroma upsampling. CMYK is refused.
absl::Status DecodeJpeg(std::span<const uint8_t> bytes, Image* out);

// libpng: palettes and grey expanded, 16 bit scaled to 8, alpha dropped.
absl::Status DecodePng(std::span<const uint8_t> bytes, Image* out);

}  // namespace hetero::pipeline
