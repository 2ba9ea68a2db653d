#include "runtime/pipeline/gaussian_blur_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "runtime/pipeline/gaussian_blur.h"
#include "tests/unit/runtime/pipeline/fixtures.h"
#include "tests/unit/runtime/pipeline/instruction_sets.h"

namespace hetero::pipeline {
namespace {

int32_t Mirrored(int32_t i, int32_t size) {
  i = std::abs(i);
  return i < size ? i : 2 * size - 2 - i;
}

// One pass over a plane of `size` values `step` apart, as the header defines it.
std::vector<int64_t> NaivePass(const std::function<int64_t(int32_t)>& value, int32_t size,
                               std::span<const uint16_t> weights) {
  const int32_t radius = int32_t(weights.size()) - 1;
  const bool is_short = radius <= kMaxShortRadius;
  const auto times = [](int64_t v, int64_t w) { return (v * w + (1 << 14)) >> 15; };
  std::vector<int64_t> out;
  for (int32_t x = 0; x < size; ++x) {
    int64_t sum = 0;
    if (is_short) {
      sum = value(x) + times(value(x), int64_t{weights[0]} - (1 << 15));
      for (int32_t i = 1; i <= radius; ++i) {
        sum +=
            times(value(Mirrored(x - i, size)) + value(Mirrored(x + i, size)), weights[size_t(i)]);
      }
    } else {
      sum = value(x) * weights[0];
      for (int32_t i = 1; i <= radius; ++i) {
        sum += (value(Mirrored(x - i, size)) + value(Mirrored(x + i, size))) * weights[size_t(i)];
      }
    }
    out.push_back(sum);
  }
  return out;
}

Image NaiveBlur(const Image& in, std::span<const uint16_t> weights) {
  while (weights.size() > 1 && weights.back() == 0) weights = weights.first(weights.size() - 1);
  const bool is_short = int32_t(weights.size()) - 1 <= kMaxShortRadius;
  const auto [height, width, channels] = in.shape;
  Image out;
  out.Reshape(in.shape);
  for (int32_t c = 0; c < channels; ++c) {
    std::vector<std::vector<int64_t>> rows;
    for (int32_t y = 0; y < height; ++y) {
      rows.push_back(NaivePass(
          [&, step = channels](int32_t x) {
            const int64_t v = in.row(y)[x * step + c];
            return is_short ? v * 64 : v;
          },
          width, weights));
      if (!is_short) {
        for (int64_t& v : rows.back()) v = (v + 128) >> 8;
      }
    }
    for (int32_t x = 0; x < width; ++x) {
      const auto column =
          NaivePass([&](int32_t y) { return rows[size_t(y)][size_t(x)]; }, height, weights);
      for (int32_t y = 0; y < height; ++y) {
        const int64_t v = column[size_t(y)];
        out.row(y)[x * channels + c] = uint8_t(is_short ? (v + 32) >> 6 : (v + (1 << 21)) >> 22);
      }
    }
  }
  return out;
}

struct Case {
  api::ImageShape shape;
  int32_t kernel_size;
  double sigma;
};

// Widths around every vector length, one and many channels, kernels as wide as the picture, strips.
const std::vector<Case>& Cases() {
  static const auto& cases = *new std::vector<Case>{
      {{224, 224, 3}, 11, 2.0},  {{224, 224, 3}, 11, 0.7}, {{20, 23, 3}, 11, 0.1},
      {{12, 5, 3}, 3, 0.3},      {{9, 21, 3}, 5, 0.45},    {{7, 22, 3}, 7, 1.1},
      {{13, 64, 1}, 9, 0.9},     {{13, 65, 1}, 11, 5.0},   {{14, 63, 1}, 13, 3.0},
      {{6, 6, 3}, 11, 2.0},      {{8, 7, 4}, 13, 9.0},     {{17, 33, 2}, 15, 7.0},
      {{64, 64, 3}, 127, 40.0},  {{40, 70, 1}, 23, 2.0},   {{15, 3001, 3}, 11, 1.9},
      {{140, 1025, 1}, 255, 60}, {{12, 1281, 5}, 11, 1.5}, {{2, 2, 1}, 3, 1.0},
      {{7, 130, 11}, 13, 2.5}};
  return cases;
}

TEST(GaussianBlurKernel, EveryInstructionSetGivesTheBytesOfTheDefinition) {
  ASSERT_GE(InstructionSet::All().size(), 2u);
  std::vector<uint16_t> weights;
  for (const Case& c : Cases()) {
    const Image in = NoiseImage(c.shape);
    GaussianWeights(c.kernel_size, c.sigma, &weights);
    const Image expected = NaiveBlur(in, weights);
    for (const int64_t target : InstructionSet::All()) {
      const InstructionSet set(target);
      Image out;
      BlurWithWeights(in.view(), weights, &out);
      EXPECT_EQ(out.shape, in.shape);
      EXPECT_TRUE(out.bytes == expected.bytes)
          << set.name() << " " << ToString(c.shape) << " " << c.kernel_size << " " << c.sigma;
    }
  }
}

TEST(GaussianBlurKernel, ExtremesDoNotOverflow) {
  std::vector<uint16_t> weights;
  for (const int32_t size : {3, 11, 13, 15, 31}) {
    for (const double sigma : {0.1, 0.5, 2.0, 1000.0}) {
      Image in = NoiseImage({40, 40, 3});
      for (uint8_t& v : in.bytes) v = v < 128 ? 0 : 255;
      GaussianWeights(size, sigma, &weights);
      const Image expected = NaiveBlur(in, weights);
      for (const int64_t target : InstructionSet::All()) {
        const InstructionSet set(target);
        Image out;
        BlurWithWeights(in.view(), weights, &out);
        EXPECT_TRUE(out.bytes == expected.bytes) << set.name() << " " << size << " " << sigma;
        std::fill(out.bytes.begin(), out.bytes.end(), uint8_t{255});
        Image flat = out, blurred;
        BlurWithWeights(flat.view(), weights, &blurred);
        EXPECT_TRUE(blurred.bytes == flat.bytes) << set.name() << " " << size << " " << sigma;
      }
    }
  }
}

}  // namespace
}  // namespace hetero::pipeline
