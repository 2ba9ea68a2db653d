#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "base/clock.h"
#include "runtime/job/philox.h"
#include "runtime/pipeline/image.h"

namespace hetero::pipeline {

// Who calls the functions of a pipeline's Python operators: runtime/interpreter, in the process of
// a CPU worker. Safe from any thread.
class PythonFunctions {
 public:
  virtual ~PythonFunctions() = default;

  // The place of the operator's function among those that can be called.
  virtual absl::StatusOr<int32_t> Find(const api::OperatorSpec& spec) const = 0;

  // Writes the function's result for `in` into `*out`, which has the shape that the operator
  // announced. `training` is false for validation samples: the function then gets no random
  // numbers; else they are a function of `key`. kDataLoss: it raises an exception for this picture,
  // each time. kInternal: its result is another than announced. kUnavailable: the interpreters end,
  // hang or have no memory, as they may not elsewhere. kCancelled: the process ends.
  virtual absl::Status Call(int32_t function, const job::StreamKey& key, bool training,
                            const ImageView& in, Image* out) const = 0;

  // CPU time that all Call()s of this thread have taken elsewhere than in it.
  virtual base::Duration ThreadCpu() const = 0;
};

}  // namespace hetero::pipeline
