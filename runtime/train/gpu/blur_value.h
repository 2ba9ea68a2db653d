#pragma once

#include <cstdint>

#include "runtime/train/gpu/picture_batch.h"
#include "runtime/train/gpu/portable.h"

// One value of each pass of a Gaussian blur: what a thread of blur_kernel.cu computes. The
// arithmetic is that of pipeline/gaussian_blur_kernel.h to the bit. A test runs the same functions
// on the CPU, because most machines that build this have no GPU.
namespace hetero::train::gpu {

// pipeline::kMaxShortRadius: up to here values have 6 fractional bits and each product is rounded,
// beyond values between the passes have 7 and products are summed exactly.
inline constexpr int kMaxShortRadius = 6;
inline constexpr int kShortBits = 6, kLongBits = 7, kWeightBits = 15;

HETERO_HOST_DEVICE inline int Reflect(int i, int size) {
  if (i < 0) return -i;
  return i < size ? i : 2 * (size - 1) - i;
}

HETERO_HOST_DEVICE inline int RoundedProduct(int value, int weight) {
  return (value * weight + (1 << (kWeightBits - 1))) >> kWeightBits;
}

// Over the values `step` apart, of which the line has `size`; `i` is the place of `centre` in it.
template <typename Value>
HETERO_HOST_DEVICE int ShortSum(const Value* centre, int i, int size, int64_t step,
                                const uint16_t* weights, int radius, int unit) {
  const int own = *centre * unit;
  int sum = own + RoundedProduct(own, weights[0] - (1 << kWeightBits));
  for (int k = 1; k <= radius; ++k) {
    const int before = centre[(Reflect(i - k, size) - i) * step];
    const int after = centre[(Reflect(i + k, size) - i) * step];
    sum += RoundedProduct((before + after) * unit, weights[k]);
  }
  return sum;
}

template <typename Value>
HETERO_HOST_DEVICE uint32_t LongSum(const Value* centre, int i, int size, int64_t step,
                                    const uint16_t* weights, int radius) {
  uint32_t sum = uint32_t{*centre} * weights[0];
  for (int k = 1; k <= radius; ++k) {
    const uint32_t pair = uint32_t{centre[(Reflect(i - k, size) - i) * step]} +
                          uint32_t{centre[(Reflect(i + k, size) - i) * step]};
    sum += pair * weights[k];
  }
  return sum;
}

// Where value number `at` of a batch stands.
struct Place {
  int64_t sample;
  int y, x;
};

HETERO_HOST_DEVICE inline Place PlaceOf(int64_t at, const PictureBatch& batch) {
  const int64_t pixel = at / batch.channels;
  const int64_t row = pixel / batch.width;
  return {row / batch.height, static_cast<int>(row % batch.height),
          static_cast<int>(pixel % batch.width)};
}

// A weight of zero adds nothing, and pipeline::BlurWithWeights chooses its arithmetic by the
// largest distance that counts.
HETERO_HOST_DEVICE inline int EffectiveRadius(const uint16_t* half, int radius) {
  while (radius > 0 && half[radius] == 0) --radius;
  return radius;
}

// Value `at` between the passes, from the bytes of the whole batch. `weights` is
// [samples, radius + 1].
HETERO_HOST_DEVICE inline uint16_t BlurredAlongRow(const uint8_t* in, const PictureBatch& batch,
                                                   const uint16_t* weights, int radius,
                                                   int64_t at) {
  const Place place = PlaceOf(at, batch);
  const uint16_t* half = weights + place.sample * (radius + 1);
  radius = EffectiveRadius(half, radius);
  if (radius <= kMaxShortRadius) {
    return static_cast<uint16_t>(
        ShortSum(in + at, place.x, batch.width, batch.channels, half, radius, 1 << kShortBits));
  }
  constexpr int kShift = kWeightBits - kLongBits;
  const uint32_t sum = LongSum(in + at, place.x, batch.width, batch.channels, half, radius);
  return static_cast<uint16_t>((sum + (1u << (kShift - 1))) >> kShift);
}

// Byte `at` of the result, from all values between the passes.
HETERO_HOST_DEVICE inline uint8_t BlurredAlongColumn(const uint16_t* between,
                                                     const PictureBatch& batch,
                                                     const uint16_t* weights, int radius,
                                                     int64_t at) {
  const Place place = PlaceOf(at, batch);
  const uint16_t* half = weights + place.sample * (radius + 1);
  radius = EffectiveRadius(half, radius);
  const int64_t row = int64_t{batch.width} * batch.channels;
  if (radius <= kMaxShortRadius) {
    // Values between the passes are signed there: a rounded sum may lie just below 0.
    const auto* values = reinterpret_cast<const int16_t*>(between);
    const int sum = ShortSum(values + at, place.y, batch.height, row, half, radius, 1);
    return static_cast<uint8_t>((sum + (1 << (kShortBits - 1))) >> kShortBits);
  }
  constexpr int kShift = kWeightBits + kLongBits;
  const uint32_t sum = LongSum(between + at, place.y, batch.height, row, half, radius);
  return static_cast<uint8_t>((sum + (1u << (kShift - 1))) >> kShift);
}

}  // namespace hetero::train::gpu
