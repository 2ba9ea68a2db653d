#pragma once

#include <string>
#include <vector>

#include "api/hetero_training_job.h"
#include "api/manifest.h"

namespace hetero::local {

// The GPUs that programs started by this process may use, as values of CUDA_VISIBLE_DEVICES: those
// that `variable`, this process's own value of it, names (null: all) of the `driver_gpus` that the
// driver has. As for CUDA, the list ends at the first name that is no GPU's, and a name that stands
// there twice leaves none. Names by UUID ("GPU-...", "MIG-...") are believed. Pure.
std::vector<std::string> UsableGpus(const char* variable, int driver_gpus);

// UsableGpus() of this machine; empty without a driver.
std::vector<std::string> GpusOfThisMachine();

// One error when the GPU workers of `job` want more GPUs than the `usable` ones. None for a script:
// whether it needs GPUs only the script knows. Pure.
std::vector<api::FieldError> CheckGpus(const api::HeteroTrainingJob& job,
                                       const std::vector<std::string>& usable);

// Whether `job` trains a model on GPUs, which takes the hetero-trainer that was built with CUDA.
bool TrainsOnGpus(const api::HeteroTrainingJob& job);

// Gives each replica its GPUs, in the order they are asked for.
class GpuShares {
 public:
  explicit GpuShares(std::vector<std::string> usable) : usable_(std::move(usable)) {}

  // CUDA_VISIBLE_DEVICES of the next replica, which has `count` GPUs; fewer where no more are
  // left, empty for none.
  std::string Next(int count);

 private:
  std::vector<std::string> usable_;
  size_t given_ = 0;
};

}  // namespace hetero::local
