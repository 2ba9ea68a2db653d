#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/feed/batch_stream.h"

namespace hetero::train {

// Where a rank's batches come from. Called by the training thread.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // The stream of the batches from `index` of the schedule on; the one returned before is gone,
  // unless it stands there.
  virtual absl::StatusOr<feed::BatchStream*> From(int64_t index) = 0;
};

}  // namespace hetero::train
