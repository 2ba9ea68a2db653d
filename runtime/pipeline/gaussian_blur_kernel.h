#pragma once

#include <cstdint>
#include <span>

#include "runtime/pipeline/image.h"

namespace hetero::pipeline {

// Widest radius that is summed in 16 bits: each tap may be off by half a unit of 1/64, and seven
// taps in each of two passes stay below a tenth of a level.
inline constexpr int32_t kMaxShortRadius = 6;

// Blurs `in` with the half kernel `weights` of GaussianWeights(), at least one entry, in two passes
// (along rows, then along columns). With P(i) the value at distance i, borders reflected without
// repeating the edge, and x * y / 2^15 rounded to nearest (halves up):
//
// - up to kMaxShortRadius: values have 6 fractional bits in int16, and each pass gives
//   P(0) + P(0) * (w[0] - 2^15) + sum of (P(-i) + P(i)) * w[i];
// - beyond: products are summed exactly in 32 bits, and values between the passes have 7 bits.
//
// The last pass rounds to nearest. Chooses the best instruction set of the machine at run time; all
// give the same bytes. Both edges of `in` exceed the radius. `out` takes as many bytes as `in` has
// and is not its storage. Thread-safe.
void BlurWithWeights(const ImageView& in, std::span<const uint16_t> weights, uint8_t* out);
void BlurWithWeights(const ImageView& in, std::span<const uint16_t> weights, Image* out);

// Whether these weights leave every picture as it is: all of the weight in the centre.
bool BlursNothing(std::span<const uint16_t> weights);

}  // namespace hetero::pipeline
