#pragma once

#include <cstdint>

#include "runtime/train/gpu/portable.h"

// One value of a converted picture: what a thread of convert_kernel.cu computes. A test runs the
// same functions on the CPU.
namespace hetero::train::gpu {

inline constexpr int kMaxChannels = 16;

enum class PixelLayout { kChannelsLast, kChannelsFirst };

// One multiplication and one addition per value: x * scale[c] + shift[c], as InputConverter does on
// the CPU.
struct PixelScale {
  float scale[kMaxChannels];
  float shift[kMaxChannels];
};

// The byte that value `at` of the output comes from, and its channel.
struct PixelSource {
  int64_t byte;
  int channel;
};

// One thread per value of the output, so that writes are coalesced in both layouts; the bytes come
// out of the cache for channels first.
template <PixelLayout kLayout>
HETERO_HOST_DEVICE PixelSource SourceOf(int64_t at, int64_t pixels, int channels) {
  if (kLayout == PixelLayout::kChannelsLast) return {at, static_cast<int>(at % channels)};
  const int64_t plane = at / pixels;
  const auto channel = static_cast<int>(plane % channels);
  return {(plane / channels * pixels + at % pixels) * channels + channel, channel};
}

// In float32, never contracted to one multiply-add.
HETERO_HOST_DEVICE inline float ScaledPixel(uint8_t byte, const PixelScale& scale, int channel) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(__fmul_rn(static_cast<float>(byte), scale.scale[channel]), scale.shift[channel]);
#else
  return static_cast<float>(byte) * scale.scale[channel] + scale.shift[channel];
#endif
}

}  // namespace hetero::train::gpu
