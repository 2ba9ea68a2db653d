#include "runtime/train/gpu/blur_kernel.h"

namespace hetero::train::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 65536;
// pipeline::kMaxShortRadius: up to here values have 6 fractional bits and each product is rounded,
// beyond values between the passes have 7 and products are summed exactly.
constexpr int kMaxShortRadius = 6;
constexpr int kShortBits = 6, kLongBits = 7, kWeightBits = 15;

__device__ int Reflect(int i, int size) {
  if (i < 0) return -i;
  return i < size ? i : 2 * (size - 1) - i;
}

__device__ int Times(int value, int weight) {
  return (value * weight + (1 << (kWeightBits - 1))) >> kWeightBits;
}

// One pass over the values `step` apart, of which the line has `size`; `i` is this value's place.
template <typename Value>
__device__ int ShortSum(const Value* centre, int i, int size, int64_t step, const uint16_t* weights,
                        int radius, int unit) {
  const int own = *centre * unit;
  int sum = own + Times(own, weights[0] - (1 << kWeightBits));
  for (int k = 1; k <= radius; ++k) {
    const int before = centre[(Reflect(i - k, size) - i) * step];
    const int after = centre[(Reflect(i + k, size) - i) * step];
    sum += Times((before + after) * unit, weights[k]);
  }
  return sum;
}

template <typename Value>
__device__ uint32_t LongSum(const Value* centre, int i, int size, int64_t step,
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

__device__ Place PlaceOf(int64_t at, const PictureBatch& batch) {
  const int64_t pixel = at / batch.channels;
  const int64_t row = pixel / batch.width;
  return {row / batch.height, static_cast<int>(row % batch.height),
          static_cast<int>(pixel % batch.width)};
}

__global__ void AlongRows(const uint8_t* __restrict__ in, PictureBatch batch,
                          const uint16_t* __restrict__ weights, int radius,
                          uint16_t* __restrict__ out) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  const int64_t count = batch.samples * batch.height * batch.width * batch.channels;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < count; at += stride) {
    const Place place = PlaceOf(at, batch);
    const uint16_t* half = weights + place.sample * (radius + 1);
    if (radius <= kMaxShortRadius) {
      out[at] = static_cast<uint16_t>(
          ShortSum(in + at, place.x, batch.width, batch.channels, half, radius, 1 << kShortBits));
    } else {
      constexpr int kShift = kWeightBits - kLongBits;
      const uint32_t sum = LongSum(in + at, place.x, batch.width, batch.channels, half, radius);
      out[at] = static_cast<uint16_t>((sum + (1u << (kShift - 1))) >> kShift);
    }
  }
}

__global__ void AlongColumns(const uint16_t* __restrict__ in, PictureBatch batch,
                             const uint16_t* __restrict__ weights, int radius,
                             uint8_t* __restrict__ out) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  const int64_t row = int64_t{batch.width} * batch.channels;
  const int64_t count = batch.samples * batch.height * row;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < count; at += stride) {
    const Place place = PlaceOf(at, batch);
    const uint16_t* half = weights + place.sample * (radius + 1);
    if (radius <= kMaxShortRadius) {
      // Values between the passes are signed there: a rounded sum may lie just below 0.
      const auto* values = reinterpret_cast<const int16_t*>(in);
      const int sum = ShortSum(values + at, place.y, batch.height, row, half, radius, 1);
      out[at] = static_cast<uint8_t>((sum + (1 << (kShortBits - 1))) >> kShortBits);
    } else {
      constexpr int kShift = kWeightBits + kLongBits;
      const uint32_t sum = LongSum(in + at, place.y, batch.height, row, half, radius);
      out[at] = static_cast<uint8_t>((sum + (1u << (kShift - 1))) >> kShift);
    }
  }
}

}  // namespace

cudaError_t Blur(const uint8_t* in, const PictureBatch& batch, const uint16_t* weights, int radius,
                 uint16_t* between, uint8_t* out, cudaStream_t stream) {
  if (batch.bytes() == 0) return cudaSuccess;
  const int64_t wanted = (batch.bytes() + kThreads - 1) / kThreads;
  const auto blocks = static_cast<unsigned>(wanted < kMaxBlocks ? wanted : kMaxBlocks);
  AlongRows<<<blocks, kThreads, 0, stream>>>(in, batch, weights, radius, between);
  AlongColumns<<<blocks, kThreads, 0, stream>>>(between, batch, weights, radius, out);
  return cudaGetLastError();
}

}  // namespace hetero::train::gpu
