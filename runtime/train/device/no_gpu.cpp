// OpenGpu of a build without CUDA; gpu/cuda_device.cpp has the other.
#include "runtime/train/device/device.h"

namespace hetero::train {

absl::StatusOr<std::unique_ptr<Device>> OpenGpu() {
  return absl::UnimplementedError(
      "this hetero-trainer was built without CUDA and trains on the CPU; give the GPUWorker role "
      "the image of the trainer with CUDA, hetero-trainer:<version>-cuda (in its template, or as "
      "jobs.trainerImage of the operator's chart), or set gpusPerReplica: 0");
}

}  // namespace hetero::train
