#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "api/hetero_training_job.h"
#include "runtime/pipeline/pipeline.h"

namespace hetero::train {

// What one rank trains, and as which of the ranks.
struct TrainerOptions {
  api::HeteroTrainingJob job;
  int32_t rank = 0;
  int32_t world_size = 1;
  int64_t generation = 0;  // set by RunTrainer
  std::string run;         // unique per run of the job; the same after restarts inside one
  std::string member;      // "gpu-0", for messages
  int threads = 1;         // intra-op threads of LibTorch
  int32_t classes = 0;     // of the dataset
  int64_t samples = 0;     // of the training split
  std::string dataset_fingerprint;
  std::string dataset_versions;  // of the objects it lies in; empty: none
  api::ImageShape input;         // of one sample on the wire, uint8 HWC
  pipeline::TensorConversion conversion;
  // Before training (ceiling_probe.h); 0: none. On all ranks alike.
  int32_t ceiling_probe_steps = 0;
  bool gpu = false;  // train on the first GPU that this process sees
  // Rank 0 writes the trained weights there as model.safetensors; empty: nobody does.
  std::string output_folder;
  // Called by rank 0 when they are written, while the other ranks wait; its error is the job's.
  std::function<absl::Status()> deliver;
};

}  // namespace hetero::train
