#include "runtime/train/device.h"

namespace hetero::train {
namespace {

class CpuDevice : public Device {
 public:
  torch::Device place() const override { return torch::kCPU; }

  torch::Tensor Convert(const uint8_t* bytes, int64_t count, const api::ImageShape& shape,
                        const PixelFormat& format) override {
    torch::NoGradGuard no_grad;
    // from_blob wants mutable bytes; they are only read.
    torch::Tensor values =
        torch::from_blob(const_cast<uint8_t*>(bytes),
                         {count, shape.height, shape.width, shape.channels}, torch::kUInt8)
            .to(torch::kFloat32);
    if (!format.identity) {
      values.mul_(torch::tensor(format.scale)).add_(torch::tensor(format.shift));
    }
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
