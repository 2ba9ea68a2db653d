#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/feed/wire/batch.h"
#include "runtime/job/step_plan.h"
#include "runtime/train/process_group/agreement.h"

namespace hetero::train {

// Whether `batch` has the samples of `slots` of training step `step`.
absl::Status CheckTicket(const feed::Batch& batch, const job::SlotRange& slots, int64_t step);

// Whether `batch` is batch `number` of an evaluation.
absl::Status CheckEvaluationTicket(const feed::Batch& batch, int64_t number);

// What a rank tells the others of the batch it got, or of why it got none.
RankState StateFor(const absl::StatusOr<std::unique_ptr<feed::Batch>>& batch, uint64_t seed);

}  // namespace hetero::train
