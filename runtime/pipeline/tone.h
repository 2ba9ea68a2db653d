#pragma once

#include "runtime/pipeline/image.h"

namespace hetero::pipeline {

// torchvision's functions of the same names, in place on `height x width x {1, 3}`.

// Stretches each channel so that its darkest value becomes 0 and its brightest 255; a channel of
// one value stays.
void AutoContrast(Image* image);

// Spreads each channel's histogram evenly, with Pillow's rounding.
void Equalize(Image* image);

// Keeps the highest `bits` bits of every value, 0..8.
void Posterize(int32_t bits, Image* image);

// Inverts every value that is `threshold` or more.
void Solarize(int32_t threshold, Image* image);

void Invert(Image* image);

// Blends with the picture smoothed by a 3x3 kernel: factor 0 gives the smoothed picture, 1 the
// same, 2 twice the sharpness. The outermost pixels stay; so does a picture of fewer than three
// rows or columns. `factor` in [0, 60].
void AdjustSharpness(double factor, Image* image);

}  // namespace hetero::pipeline
