// What the GPU's threads compute, run on the CPU and held against the CPU's own operators, byte for
// byte. kernel_test.cpp does the same on a GPU.
#include <gtest/gtest.h>

#include <vector>

#include "runtime/job/philox.h"
#include "runtime/pipeline/gaussian_blur.h"
#include "runtime/train/gpu/blur_value.h"
#include "runtime/train/gpu/convert_value.h"

namespace hetero::train::gpu {
namespace {

std::vector<uint8_t> Noise(int64_t size) {
  job::RandomStream random(1, 2, 3, 4);
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Below(256));
  return bytes;
}

// One picture per sigma; kernels below and above the radius at which the arithmetic changes.
TEST(GpuValueTest, BlursToTheSameBytes) {
  const api::ImageShape shape = {40, 31, 3};
  const std::vector<double> sigmas = {0.1, 0.7, 2.0, 4.0};
  const PictureBatch batch = {static_cast<int64_t>(sigmas.size()), shape.height, shape.width,
                              shape.channels};
  const std::vector<uint8_t> bytes = Noise(batch.bytes());
  const auto sample_size = static_cast<size_t>(pipeline::ByteSize(shape));
  for (const int32_t kernel_size : {3, 11, 13, 15, 31}) {
    const int radius = kernel_size / 2;
    std::vector<uint16_t> weights;
    std::vector<uint8_t> want;
    for (size_t i = 0; i < sigmas.size(); ++i) {
      std::vector<uint16_t> half;
      pipeline::GaussianWeights(kernel_size, sigmas[i], &half);
      weights.insert(weights.end(), half.begin(), half.end());
      pipeline::Image blurred;
      pipeline::Blur({shape, bytes.data() + i * sample_size}, kernel_size, sigmas[i], &blurred);
      want.insert(want.end(), blurred.bytes.begin(), blurred.bytes.end());
    }
    std::vector<uint16_t> between(bytes.size());
    std::vector<uint8_t> got(bytes.size());
    for (int64_t at = 0; at < batch.bytes(); ++at) {
      between[static_cast<size_t>(at)] =
          BlurredAlongRow(bytes.data(), batch, weights.data(), radius, at);
    }
    for (int64_t at = 0; at < batch.bytes(); ++at) {
      got[static_cast<size_t>(at)] =
          BlurredAlongColumn(between.data(), batch, weights.data(), radius, at);
    }
    EXPECT_EQ(got, want) << "kernel size " << kernel_size;
  }
}

template <PixelLayout kLayout>
void ExpectConverted(int64_t samples, int64_t pixels, int channels) {
  const std::vector<uint8_t> bytes = Noise(samples * pixels * channels);
  const PixelScale scale = {{0.0171f, 0.0175f, 0.0174f}, {-2.118f, -2.036f, -1.804f}};
  for (int64_t n = 0; n < samples; ++n) {
    for (int64_t p = 0; p < pixels; ++p) {
      for (int c = 0; c < channels; ++c) {
        const int64_t last = (n * pixels + p) * channels + c;
        const int64_t first = (n * channels + c) * pixels + p;
        const PixelSource source = SourceOf<kLayout>(
            kLayout == PixelLayout::kChannelsLast ? last : first, pixels, channels);
        ASSERT_EQ(source.byte, last);
        ASSERT_EQ(source.channel, c);
        const uint8_t byte = bytes[static_cast<size_t>(last)];
        const float scaled = static_cast<float>(byte) * scale.scale[c];
        ASSERT_EQ(ScaledPixel(byte, scale, c), scaled + scale.shift[c]);
      }
    }
  }
}

TEST(GpuValueTest, ConvertsInBothLayouts) {
  ExpectConverted<PixelLayout::kChannelsLast>(5, 33 * 17, 3);
  ExpectConverted<PixelLayout::kChannelsFirst>(5, 33 * 17, 3);
  ExpectConverted<PixelLayout::kChannelsFirst>(3, 28 * 28, 1);
}

}  // namespace
}  // namespace hetero::train::gpu
