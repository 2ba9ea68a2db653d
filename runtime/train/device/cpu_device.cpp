#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "runtime/train/device/device.h"

namespace hetero::train {
namespace {

constexpr int64_t kPixelsPerTask = 16 << 10;
constexpr size_t kPatternPixels = 16;

// A number for each channel, repeated, so that a loop over it needs not know about channels:
// LibTorch's own loop over three channels takes ten times as long.
class Pattern {
 public:
  Pattern(const std::vector<float>& channels, float otherwise) {
    const std::vector<float> one = channels.empty() ? std::vector<float>{otherwise} : channels;
    for (size_t i = 0; i < kPatternPixels; ++i) {
      values_.insert(values_.end(), one.begin(), one.end());
    }
  }
  const float* data() const { return values_.data(); }
  int64_t size() const { return static_cast<int64_t>(values_.size()); }

 private:
  std::vector<float> values_;
};

// Rounds the product and the sum, as LibTorch does for a multiplication and an addition.
void Normalise(const uint8_t* in, int64_t size, const Pattern& scale, const Pattern& shift,
               float* out) {
  for (int64_t first = 0; first < size; first += scale.size()) {
    const int64_t count = std::min(scale.size(), size - first);
    const float* by = scale.data();
    const float* plus = shift.data();
    for (int64_t i = 0; i < count; ++i) {
      const float product = static_cast<float>(in[first + i]) * by[i];
      out[first + i] = product + plus[i];
    }
  }
}

class CpuDevice : public Device {
 public:
  torch::Device place() const override { return torch::kCPU; }

  torch::Tensor Convert(const uint8_t* bytes, int64_t count, const api::ImageShape& shape,
                        const PixelFormat& format) override {
    torch::NoGradGuard no_grad;
    torch::Tensor values =
        torch::empty({count, shape.height, shape.width, shape.channels}, torch::kFloat32);
    float* out = values.data_ptr<float>();
    const Pattern scale(format.scale, 1.0f), shift(format.shift, 0.0f);
    const auto pixels = int64_t{count} * shape.height * shape.width;
    at::parallel_for(0, pixels, kPixelsPerTask, [&](int64_t begin, int64_t end) {
      Normalise(bytes + begin * shape.channels, (end - begin) * shape.channels, scale, shift,
                out + begin * shape.channels);
    });
    values = values.permute({0, 3, 1, 2});
    return format.channels_last ? values : values.contiguous();
  }

  c10::intrusive_ptr<c10d::Backend> ConnectGradients(const c10::intrusive_ptr<c10d::Store>&,
                                                     int32_t, int32_t) override {
    return {};
  }
  void CutGradients() override {}
};

}  // namespace

std::unique_ptr<Device> MakeCpuDevice() { return std::make_unique<CpuDevice>(); }

}  // namespace hetero::train
