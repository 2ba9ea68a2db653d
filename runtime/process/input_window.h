#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace hetero::process {

// What decides how much may wait at a rank's trainer.
struct InputWindowOptions {
  std::string wanted;  // spec.training.inputWindow; empty: by the memory
  // Bytes that the ranks may use together with all that runs beside them; none: not known.
  std::optional<int64_t> memory_limit;
  int32_t ranks = 1;        // that share this memory
  int64_t batch_bytes = 0;  // of one batch of this rank
};

// Bytes of batches that may wait at one rank, of one stream: as wanted, else a tenth of its part of
// the memory, from 192 MiB to 2 GiB, and never more than a quarter of that part. Two batches in any
// case, without which nothing would be made while a step is computed. kInvalidArgument when what is
// wanted is, for all ranks, more than half of the memory.
absl::StatusOr<int64_t> InputWindow(const InputWindowOptions& options);

}  // namespace hetero::process
