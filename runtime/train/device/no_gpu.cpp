// OpenGpu of a build without CUDA; gpu/cuda_device.cpp has the other.
#include "runtime/train/device/device.h"

namespace hetero::train {

absl::StatusOr<std::unique_ptr<Device>> OpenGpu() {
  return absl::UnimplementedError(
      "this hetero-trainer was built without CUDA and trains on the CPU; set gpusPerReplica: 0 in "
      "the GPUWorker role, or use the GPU image");
}

}  // namespace hetero::train
