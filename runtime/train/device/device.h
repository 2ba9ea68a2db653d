#pragma once

#include <torch/torch.h>

#include <memory>
#include <optional>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"

namespace hetero::train {

// How bytes become values: x * scale[c] + shift[c], in this element type and layout.
struct PixelFormat {
  std::vector<float> scale, shift;  // one per channel
  bool identity = false;            // scale 1 and shift 0 everywhere
  bool channels_last = false;
};

// Where a rank computes: this machine's CPU, or one GPU. Belongs to the training thread. Functions
// throw what LibTorch throws.
class Device {
 public:
  virtual ~Device() = default;

  // Where parameters, gradients and the optimiser's state live.
  virtual torch::Device place() const = 0;

  // A GPU does later what it is asked to do now, so that the host's clock says little of what takes
  // its time. These are the moments that a step's phases are told apart by.
  enum class Moment { kBegin, kForward, kGradients, kCount };
  // Notes when the device will have done all that this thread's stream has asked of it so far;
  // again later overwrites it.
  virtual void Note(Moment) {}
  // How many seconds ago it was. Only after the device has done all of it, as it has once a value
  // was read back; nullopt on the CPU, whose moments are those of the host's clock, and for what
  // was not noted.
  virtual std::optional<double> SecondsSince(Moment) { return std::nullopt; }

  // float32 [count, C, H, W] on the device from uint8 [count, H, W, C] of this process, which may
  // be freed when the call returns.
  virtual torch::Tensor Convert(const uint8_t* bytes, int64_t count, const api::ImageShape& shape,
                                const PixelFormat& format) = 0;

  // What gradients are summed over the ranks with, a group of its own; null: with Gloo, as on the
  // CPU.
  virtual c10::intrusive_ptr<c10d::Backend> ConnectGradients(
      const c10::intrusive_ptr<c10d::Store>& store, int32_t rank, int32_t world_size) = 0;
  // Ends what ConnectGradients made, collectives under way included; from any thread.
  virtual void CutGradients() = 0;
};

std::unique_ptr<Device> MakeCpuDevice();

// The first GPU that this process sees. kFailedPrecondition when there is none;
// kUnimplemented in a build without CUDA.
absl::StatusOr<std::unique_ptr<Device>> OpenGpu();

}  // namespace hetero::train
