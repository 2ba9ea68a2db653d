// The GPU's kernels against the CPU's twins, byte for byte. ctest runs it where there is a GPU.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/job/philox.h"
#include "runtime/pipeline/gaussian_blur.h"
#include "runtime/train/gpu/blur_kernel.h"
#include "runtime/train/gpu/convert_kernel.h"

namespace hetero::train::gpu {
namespace {

// Memory on the device.
template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t size) : size_(size) {
    EXPECT_EQ(cudaMalloc(&data_, size * sizeof(T)), cudaSuccess);
  }
  explicit Buffer(const std::vector<T>& values) : Buffer(values.size()) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* get() { return data_; }
  std::vector<T> Read() const {
    std::vector<T> values(size_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

 private:
  size_t size_;
  T* data_ = nullptr;
};

std::vector<uint8_t> Noise(size_t size) {
  job::RandomStream random(1, 2, 3, 4);
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Below(256));
  return bytes;
}

TEST(GpuKernelTest, ConvertsLikeTheCpuInBothLayouts) {
  constexpr int64_t kSamples = 5, kPixels = 33 * 17;
  constexpr int kChannels = 3;
  const std::vector<uint8_t> bytes = Noise(kSamples * kPixels * kChannels);
  const PixelScale scale = {{0.0171f, 0.0175f, 0.0174f}, {-2.118f, -2.036f, -1.804f}};
  Buffer<uint8_t> in(bytes);
  Buffer<float> out(bytes.size());
  for (const PixelLayout layout : {PixelLayout::kChannelsLast, PixelLayout::kChannelsFirst}) {
    ASSERT_EQ(ConvertPixels(in.get(), kSamples, kPixels, kChannels, scale, layout, out.get(), {}),
              cudaSuccess);
    const std::vector<float> got = out.Read();
    for (int64_t n = 0; n < kSamples; ++n) {
      for (int64_t p = 0; p < kPixels; ++p) {
        for (int c = 0; c < kChannels; ++c) {
          const int64_t last = (n * kPixels + p) * kChannels + c;
          const int64_t first = (n * kChannels + c) * kPixels + p;
          const float scaled =
              static_cast<float>(bytes[static_cast<size_t>(last)]) * scale.scale[c];
          const float want = scaled + scale.shift[c];
          const int64_t at = layout == PixelLayout::kChannelsLast ? last : first;
          ASSERT_EQ(got[static_cast<size_t>(at)], want) << n << " " << p << " " << c;
        }
      }
    }
  }
}

uint16_t RoundedToBfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

TEST(GpuKernelTest, Bfloat16IsTheRoundedFloat) {
  const std::vector<uint8_t> bytes = Noise(4096);
  const PixelScale scale = {{0.0171f}, {-2.118f}};
  Buffer<uint8_t> in(bytes);
  Buffer<uint16_t> out(bytes.size());
  ASSERT_EQ(ConvertPixelsToBfloat16(in.get(), 4, 1024, 1, scale, PixelLayout::kChannelsLast,
                                    out.get(), {}),
            cudaSuccess);
  const std::vector<uint16_t> got = out.Read();
  for (size_t i = 0; i < bytes.size(); ++i) {
    const float scaled = static_cast<float>(bytes[i]) * scale.scale[0];
    ASSERT_EQ(got[i], RoundedToBfloat16(scaled + scale.shift[0])) << i;
  }
}

// One picture per sigma; kernels below and above the radius at which the arithmetic changes.
TEST(GpuKernelTest, BlursToTheSameBytes) {
  const api::ImageShape shape = {40, 31, 3};
  const std::vector<double> sigmas = {0.1, 0.7, 2.0, 4.0};
  for (const int32_t kernel_size : {3, 11, 13, 15, 31}) {
    const int radius = kernel_size / 2;
    const PictureBatch batch = {static_cast<int64_t>(sigmas.size()), shape.height, shape.width,
                                shape.channels};
    const std::vector<uint8_t> bytes = Noise(static_cast<size_t>(batch.bytes()));
    std::vector<uint16_t> weights;
    std::vector<uint8_t> want;
    for (size_t i = 0; i < sigmas.size(); ++i) {
      std::vector<uint16_t> half;
      pipeline::GaussianWeights(kernel_size, sigmas[i], &half);
      weights.insert(weights.end(), half.begin(), half.end());
      pipeline::Image blurred;
      const auto size = static_cast<size_t>(pipeline::ByteSize(shape));
      pipeline::Blur({shape, bytes.data() + i * size}, kernel_size, sigmas[i], &blurred);
      want.insert(want.end(), blurred.bytes.begin(), blurred.bytes.end());
    }
    Buffer<uint8_t> in(bytes);
    Buffer<uint16_t> taps(weights), between(bytes.size());
    Buffer<uint8_t> out(bytes.size());
    ASSERT_EQ(Blur(in.get(), batch, taps.get(), radius, between.get(), out.get(), {}), cudaSuccess);
    EXPECT_EQ(out.Read(), want) << "kernel size " << kernel_size;
  }
}

}  // namespace
}  // namespace hetero::train::gpu
