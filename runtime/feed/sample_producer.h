#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/api/hetero_training_job.h"
#include "runtime/feed/batch.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/source/dataset.h"

namespace hetero::feed {

// Dataset, pipeline and sample order of one job: turns (split, epoch, slot) into sample bytes. The same
// object stands behind a CPU worker and a trainer's own LocalProducer. Safe from any thread.
class SampleProducer {
 public:
  // Opens the datasets of `job` and builds the pipelines. Errors as OpenDataset and Pipeline::Create.
  static absl::StatusOr<std::unique_ptr<SampleProducer>> Create(const api::HeteroTrainingJob& job);

  // Sizes a batch for `ticket`: slab, labels, ids and checksums allocated, nothing produced yet.
  Batch Allocate(const Ticket& ticket) const;
  // Produces entry `index` of `batch`; entries may be filled from several threads at once, except
  // that a bad sample is returned in `*bad` (has_value) for the caller to append. Storage errors are
  // retried three times and then returned. A bad sample is replaced (job/replacement.h); kDataLoss
  // only when 1,000 candidates in a row are bad.
  absl::Status Produce(Batch* batch, int64_t index, std::optional<BadSample>* bad) const;

  const source::Dataset& dataset(job::Split split) const;
  bool has_validation() const { return validation_ != nullptr; }
  const pipeline::Pipeline& pipeline(job::Split split) const;

 private:
  SampleProducer() = default;
  uint64_t seed_ = 0;
  api::Shuffle shuffle_;
  std::unique_ptr<source::Dataset> train_;
  std::unique_ptr<source::Dataset> validation_;
  std::unique_ptr<pipeline::Pipeline> train_pipeline_;
  std::unique_ptr<pipeline::Pipeline> validation_pipeline_;
};

}  // namespace hetero::feed
