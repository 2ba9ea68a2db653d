#pragma once

#include "absl/status/status.h"
#include "api/hetero_training_job.h"
#include "runtime/source/dataset.h"

namespace hetero::local {

// Makes of a sample what a shard can hold: bare pixels become a PNG with the same pixels. Internal
// to pack. kInvalidArgument: pictures of one channel; a label that is not finite.
absl::Status MakePackable(const api::Label& label, source::RawSample* sample);

}  // namespace hetero::local
