#include "runtime/pipeline/gaussian_blur.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/unit/runtime/pipeline/fixtures.h"

namespace hetero::pipeline {
namespace {

// The definition, in float64 with a two-dimensional kernel.
std::vector<double> NaiveBlur(const Image& in, int32_t kernel_size, double sigma) {
  const int32_t radius = kernel_size / 2;
  std::vector<double> kernel;
  for (int32_t i = -radius; i <= radius; ++i)
    kernel.push_back(std::exp(-i * i / (2 * sigma * sigma)));
  const double total = std::accumulate(kernel.begin(), kernel.end(), 0.0);
  const auto reflect = [](int32_t i, int32_t size) {
    i = std::abs(i);
    return i < size ? i : 2 * size - 2 - i;
  };
  std::vector<double> out;
  for (int32_t y = 0; y < in.shape.height; ++y) {
    for (int32_t x = 0; x < in.shape.width; ++x) {
      for (int32_t c = 0; c < in.shape.channels; ++c) {
        double sum = 0;
        for (int32_t j = -radius; j <= radius; ++j) {
          const uint8_t* row = in.row(reflect(y + j, in.shape.height));
          for (int32_t i = -radius; i <= radius; ++i) {
            const int32_t column = reflect(x + i, in.shape.width);
            sum += kernel[size_t(j + radius)] * kernel[size_t(i + radius)] *
                   row[column * in.shape.channels + c];
          }
        }
        out.push_back(sum / (total * total));
      }
    }
  }
  return out;
}

TEST(GaussianBlur, AgreesWithNaiveTwin) {
  struct Case {
    api::ImageShape shape;
    int32_t kernel_size;
    double sigma;
  };
  const Case cases[] = {{{31, 45, 3}, 11, 1.2},  {{31, 45, 3}, 11, 0.6}, {{64, 64, 3}, 11, 1.6},
                        {{31, 45, 3}, 13, 9.0},  {{31, 45, 3}, 9, 5.0},  {{31, 45, 3}, 11, 2.0},
                        {{31, 45, 3}, 11, 0.1},  {{28, 28, 1}, 5, 0.7},  {{16, 17, 3}, 31, 9.0},
                        {{40, 33, 1}, 61, 30.0}, {{12, 12, 2}, 3, 100.0}};
  for (const Case& c : cases) {
    const Image in = NoiseImage(c.shape);
    Image out;
    Blur(in.view(), c.kernel_size, c.sigma, &out);
    const std::vector<double> expected = NaiveBlur(in, c.kernel_size, c.sigma);
    double largest = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      largest = std::max(largest, std::abs(out.bytes[i] - expected[i]));
    }
    // 0.5 is what rounding to a whole level costs.
    EXPECT_LE(largest, 0.6) << c.kernel_size << " " << c.sigma;
  }
}

TEST(GaussianBlur, KeepsAFlatPicture) {
  Image in;
  in.Reshape({20, 20, 3});
  std::fill(in.bytes.begin(), in.bytes.end(), uint8_t{255});
  Image out;
  for (const double sigma : {0.1, 1.0, 7.0, 1000.0}) {
    Blur(in.view(), 23, sigma, &out);
    EXPECT_EQ(out.bytes, in.bytes) << sigma;
  }
}

TEST(GaussianBlur, WeightsSumToOne) {
  for (const int32_t size : {1, 3, 11, 101, 1023}) {
    for (const double sigma : {0.001, 0.1, 0.5, 2.0, 50.0, 1e6}) {
      std::vector<uint16_t> weights;
      GaussianWeights(size, sigma, &weights);
      uint32_t sum = weights[0];
      for (size_t i = 1; i < weights.size(); ++i) sum += 2u * weights[i];
      EXPECT_EQ(sum, 1u << 15) << size << " " << sigma;
    }
  }
}

}  // namespace
}  // namespace hetero::pipeline
