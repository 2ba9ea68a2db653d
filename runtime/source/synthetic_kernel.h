#pragma once

#include <cstdint>
#include <vector>

#include "api/hetero_training_job.h"

namespace hetero::source {

// A synthetic picture: a triangle wave in the class's colours and contrast, plus noise.
struct SyntheticPicture {
  api::ImageShape shape;
  int32_t label = 0;
  int brightness = 0;        // 0..15
  uint16_t phase = 0;        // of the wave at the picture's corner; 65536 is one wave
  uint32_t noise_start = 0;  // counter of the first four bytes' noise
};

// Draws it into `out`, uint8 [height, width, channels]. Chooses the best instruction set of the
// machine at run time; all give the same bytes. Thread-safe.
void DrawSyntheticPicture(const SyntheticPicture& picture, uint8_t* out);

}  // namespace hetero::source
