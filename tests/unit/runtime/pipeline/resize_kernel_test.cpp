#include "runtime/pipeline/resize_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/unit/runtime/pipeline/fixtures.h"
#include "tests/unit/runtime/pipeline/instruction_sets.h"

namespace hetero::pipeline {
namespace {

// A filter as Resize makes them: neighbouring taps, weights that sum to about one.
ResizeFilter FilterOf(int32_t input, int32_t output, uint64_t seed) {
  ResizeFilter filter;
  filter.precision = 14;
  const int32_t longest = std::max(1, std::min(input, 2 * (input / output) + 2));
  filter.stride = (longest + 3) / 4 * 4;
  filter.weights.resize(size_t(output) * size_t(filter.stride));
  job::RandomStream random(seed, 0, 0, 0);
  for (int32_t i = 0; i < output; ++i) {
    Taps taps;
    taps.count = 1 + int32_t(random.Below(uint32_t(longest)));
    taps.first = int32_t(random.Below(uint32_t(input - taps.count + 1)));
    filter.taps.push_back(taps);
    for (int32_t j = 0; j < taps.count; ++j) {
      // The last one overshoots at times, so that the result has to be clamped.
      filter.weights[size_t(i * filter.stride + j)] =
          int16_t((1 << 14) / taps.count + int32_t(random.Below(400)));
    }
  }
  return filter;
}

uint8_t Naive(const ResizeFilter& filter, size_t i, const std::function<int(int32_t)>& value) {
  int64_t sum = 1 << 13;
  for (int32_t j = 0; j < filter.taps[i].count; ++j) {
    sum += int64_t{value(filter.taps[i].first + j)} *
           filter.weights[i * size_t(filter.stride) + size_t(j)];
  }
  return uint8_t(std::clamp<int64_t>(sum >> 14, 0, 255));
}

struct Case {
  api::ImageShape shape;
  int32_t output;
};

const Case kCases[] = {{{5, 7, 3}, 4},     {{5, 7, 1}, 4}, {{9, 64, 3}, 224}, {{3, 500, 3}, 224},
                       {{1, 1, 3}, 5},     {{2, 2, 3}, 1}, {{31, 33, 4}, 16}, {{300, 21, 3}, 64},
                       {{64, 43, 2}, 100}, {{7, 5, 3}, 5}, {{40, 350, 1}, 31}};

TEST(ResizeKernel, EveryInstructionSetGivesTheBytesOfTheDefinition) {
  for (const Case& c : kCases) {
    const auto [height, width, channels] = c.shape;
    const Image in = NoiseImage(c.shape);
    const PixelRows rows{in.bytes.data(), in.row_bytes(), height, width, channels};
    const ResizeFilter across = FilterOf(width, c.output, 1);
    const ResizeFilter down = FilterOf(height, c.output, 2);
    std::vector<uint8_t> expected_across, expected_down;
    for (int32_t y = 0; y < height; ++y) {
      for (size_t x = 0; x < size_t(c.output); ++x) {
        for (int32_t k = 0; k < channels; ++k) {
          expected_across.push_back(Naive(
              across, x, [&, step = channels](int32_t i) { return in.row(y)[i * step + k]; }));
        }
      }
    }
    for (size_t y = 0; y < size_t(c.output); ++y) {
      for (size_t x = 0; x < in.row_bytes(); ++x) {
        expected_down.push_back(Naive(down, y, [&](int32_t i) { return in.row(i)[x]; }));
      }
    }
    for (const int64_t target : InstructionSet::All()) {
      const InstructionSet set(target);
      std::vector<uint8_t> out(expected_across.size());
      ResizeHorizontally(rows, across, out.data());
      EXPECT_TRUE(out == expected_across) << set.name() << " " << ToString(c.shape);
      out.assign(expected_down.size(), 0);
      ResizeVertically(rows, down, out.data());
      EXPECT_TRUE(out == expected_down) << set.name() << " " << ToString(c.shape);
    }
  }
}

}  // namespace
}  // namespace hetero::pipeline
