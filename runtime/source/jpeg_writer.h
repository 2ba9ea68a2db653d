#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "api/hetero_training_job.h"

namespace hetero::source {

// Encodes `pixels`, [height, width, 3] RGB, as a baseline JPEG of quality 92 with 4:2:0 chroma
// (what cameras and web pictures have) into `*jpeg`. Errors are libjpeg's.
absl::Status EncodeJpeg(std::span<const uint8_t> pixels, api::Size size,
                        std::vector<uint8_t>* jpeg);

}  // namespace hetero::source
