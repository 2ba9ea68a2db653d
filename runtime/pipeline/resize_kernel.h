#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hetero::pipeline {

// What one output coordinate takes from the input along one axis.
struct Taps {
  int32_t first = 0;
  int32_t count = 0;
};

// The filter of one axis: output i is the sum of input taps[i].first + j times
// weights[i * stride + j], rounded and shifted right by `precision`. `stride` is a multiple of 4
// and unused weights are 0, so that kernels may take four taps at a time.
struct ResizeFilter {
  std::vector<Taps> taps;
  std::vector<int16_t> weights;
  int32_t stride = 0;
  int32_t precision = 0;
};

// Rows of `channels` interleaved bytes, `stride` bytes apart.
struct PixelRows {
  const uint8_t* data;
  size_t stride;
  int32_t height;
  int32_t width;
  int32_t channels;
};

// Along rows: in.height rows of filter.taps.size() pixels without gaps. Both passes give the same
// bytes on every instruction set.
void ResizeHorizontally(const PixelRows& in, const ResizeFilter& filter, uint8_t* out);

// Along columns: filter.taps.size() rows of in.width pixels without gaps.
void ResizeVertically(const PixelRows& in, const ResizeFilter& filter, uint8_t* out);

}  // namespace hetero::pipeline
