#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "api/hetero_training_job.h"

namespace hetero::source {

struct MakeDatasetOptions {
  std::string folder;                                            // created; must be empty or absent
  api::DatasetFormat format = api::DatasetFormat::kImageFolder;  // ImageFolder or IDX
  int32_t classes = 10;                                          // 2..64
  int64_t samples = 1000;  // training pictures, spread evenly over the classes
  int64_t validation_samples = 200;
  api::Size size = {32, 32};
  uint64_t seed = 0;
};

// Draws a labelled dataset that a small network can learn: class = shape and colour, with random
// position, size, rotation, brightness and noise. ImageFolder writes
// FOLDER/{train,val}/<class>/<number>.jpg in RGB; IDX writes FashionMNIST's four files, gzipped and
// grey. The same options give the same bytes.
absl::Status MakeDataset(const MakeDatasetOptions& options);

}  // namespace hetero::source
