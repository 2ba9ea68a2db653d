#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/feed/batch_stream.h"
#include "runtime/feed/wire/batch.h"
#include "runtime/job/schedule.h"
#include "runtime/job/step_plan.h"
#include "runtime/train/process_group/agreement.h"

namespace hetero::train {

// Whether `batch` has the samples of `slots` of training step `step`.
absl::Status CheckTicket(const feed::Batch& batch, const job::SlotRange& slots, int64_t step);

// Whether `batch` has the samples of `planned`, a batch of an evaluation.
absl::Status CheckEvaluationTicket(const feed::Batch& batch, const job::PlannedBatch& planned);

// The batches of one evaluation, held to their plan: one that is not the planned one is an error of
// Next(). For one thread.
class EvaluationBatches : public feed::BatchStream {
 public:
  // Those from `index` of `schedule` on, where `stream` stands. Both outlive this.
  EvaluationBatches(feed::BatchStream& stream, const job::Schedule& schedule, int64_t index)
      : stream_(stream), schedule_(schedule), index_(index) {}

  absl::StatusOr<std::unique_ptr<feed::Batch>> Next(std::stop_token stop) override;
  feed::StreamStats stats() const override { return stream_.stats(); }

 private:
  feed::BatchStream& stream_;
  const job::Schedule& schedule_;
  int64_t index_;
};

// What a rank tells the others of the batch it got, or of why it got none.
RankState StateFor(const absl::StatusOr<std::unique_ptr<feed::Batch>>& batch, uint64_t seed);

}  // namespace hetero::train
