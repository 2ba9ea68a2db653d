// What ProcessGroupNCCL.hpp asks for; not a compiler option, or the precompiled header would be
// none.
#define USE_C10D_NCCL
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "runtime/train/device/device.h"
#include "runtime/train/gpu/convert_kernel.h"

namespace hetero::train {
namespace {

// Two pinned buffers in turn: while one travels, the next batch is written into the other.
class Uploader {
 public:
  explicit Uploader(c10::DeviceIndex index)
      : stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index)) {}

  // uint8 [size] on the GPU; the current stream waits for it, this thread does not.
  torch::Tensor Copy(const uint8_t* bytes, int64_t size) {
    Slot& slot = slots_[next_];
    next_ = 1 - next_;
    slot.copied.synchronize();  // the copy before last
    if (!slot.pinned.defined() || slot.pinned.numel() < size) {
      slot.pinned = torch::empty({size}, torch::dtype(torch::kUInt8).pinned_memory(true));
    }
    std::memcpy(slot.pinned.data_ptr(), bytes, static_cast<size_t>(size));
    const c10::cuda::CUDAStream compute = c10::cuda::getCurrentCUDAStream(stream_.device_index());
    torch::Tensor target;
    {
      c10::cuda::CUDAStreamGuard guard(stream_);
      target = torch::empty({size}, torch::dtype(torch::kUInt8).device(stream_.device()));
    }
    C10_CUDA_CHECK(cudaMemcpyAsync(target.data_ptr(), slot.pinned.data_ptr(),
                                   static_cast<size_t>(size), cudaMemcpyHostToDevice, stream_));
    slot.copied.record(stream_);
    slot.copied.block(compute);
    target.record_stream(compute);
    return target;
  }

 private:
  struct Slot {
    torch::Tensor pinned;
    at::cuda::CUDAEvent copied;
  };
  c10::cuda::CUDAStream stream_;
  std::array<Slot, 2> slots_;
  size_t next_ = 0;
};

class CudaDevice : public Device {
 public:
  CudaDevice() : index_(c10::cuda::current_device()), uploader_(index_) {}

  torch::Device place() const override { return {torch::kCUDA, index_}; }

  torch::Tensor Convert(const uint8_t* bytes, int64_t count, const api::ImageShape& shape,
                        const PixelFormat& format) override {
    torch::NoGradGuard no_grad;
    TORCH_CHECK(shape.channels <= gpu::kMaxChannels, "pictures of ", shape.channels,
                " channels; the GPU takes ", gpu::kMaxChannels);
    const int64_t pixels = int64_t{shape.height} * shape.width;
    const torch::Tensor raw = uploader_.Copy(bytes, count * pixels * shape.channels);
    gpu::PixelScale scale{};
    std::copy(format.scale.begin(), format.scale.end(), scale.scale);
    std::copy(format.shift.begin(), format.shift.end(), scale.shift);
    torch::Tensor values = torch::empty(
        {count, shape.channels, shape.height, shape.width},
        torch::dtype(torch::kFloat32).device(place()),
        format.channels_last ? torch::MemoryFormat::ChannelsLast : torch::MemoryFormat::Contiguous);
    C10_CUDA_CHECK(gpu::ConvertPixels(
        raw.data_ptr<uint8_t>(), count, pixels, shape.channels, scale,
        format.channels_last ? gpu::PixelLayout::kChannelsLast : gpu::PixelLayout::kChannelsFirst,
        values.data_ptr<float>(), c10::cuda::getCurrentCUDAStream(index_)));
    return values;
  }

  void Note(Moment moment) override {
    moments_[static_cast<size_t>(moment)].record(c10::cuda::getCurrentCUDAStream(index_));
  }

  std::optional<double> SecondsSince(Moment moment) override {
    const at::cuda::CUDAEvent& then = moments_[static_cast<size_t>(moment)];
    if (!then.isCreated()) return std::nullopt;
    now_.record(c10::cuda::getCurrentCUDAStream(index_));
    now_.synchronize();
    return then.elapsed_time(now_) / 1e3;
  }

  c10::intrusive_ptr<c10d::Backend> ConnectGradients(const c10::intrusive_ptr<c10d::Store>& store,
                                                     int32_t rank, int32_t world_size) override {
    auto options = c10d::ProcessGroupNCCL::Options::create(/*is_high_priority_stream=*/true);
    auto group = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, world_size, options);
    const base::MutexLock lock(mutex_);
    nccl_ = group;
    return group;
  }

  void CutGradients() override {
    const base::MutexLock lock(mutex_);
    if (nccl_) nccl_->abort();
  }

 private:
  // LibTorch's own default is events without a time.
  static at::cuda::CUDAEvent Timed() { return at::cuda::CUDAEvent(cudaEventDefault); }

  const c10::DeviceIndex index_;
  std::array<at::cuda::CUDAEvent, static_cast<size_t>(Moment::kCount)> moments_ = {Timed(), Timed(),
                                                                                   Timed()};
  at::cuda::CUDAEvent now_ = Timed();
  Uploader uploader_;
  base::Mutex mutex_;
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> nccl_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenGpu() {
  if (!torch::cuda::is_available()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no usable GPU: CUDA reports ", torch::cuda::device_count(),
        " devices. Check the node's driver and the pod's GPU limit, or set gpusPerReplica: 0"));
  }
  try {
    // Convolutions of one shape all the time: let cuDNN try its algorithms once.
    at::globalContext().setBenchmarkCuDNN(true);
    at::globalContext().setAllowTF32CuDNN(false);
    return std::make_unique<CudaDevice>();
  } catch (const c10::Error& error) {
    return absl::InternalError(
        absl::StrCat("the GPU cannot be used: ", error.what_without_backtrace()));
  }
}

}  // namespace hetero::train
