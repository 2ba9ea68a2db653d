#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/feed/wire/batch.h"
#include "runtime/job/field_set.h"
#include "runtime/job/schedule.h"
#include "runtime/pipeline/mask_pipeline.h"
#include "runtime/source/dataset.h"

namespace hetero::feed {

// The masks of a job's samples, where they have any: a tensor uint8 [H, W] beside the picture.
// Immutable, safe from any thread.
class SampleMasks {
 public:
  // None, where spec.dataset.fields names none. `validation` may be null. Errors as
  // MaskPipeline::Create().
  static absl::StatusOr<SampleMasks> Create(const api::HeteroTrainingJob& job,
                                            const source::Dataset& train,
                                            const source::Dataset* validation);

  bool empty() const { return train_ == nullptr; }
  int64_t bytes(job::Split split) const;  // of one sample
  // `fields`, and the mask where there is one. Both splits have it alike.
  job::FieldSet With(const job::FieldSet& fields) const;
  // Makes that of entry `index` of `batch`, which has these fields. Errors as MaskPipeline::Run().
  absl::Status Run(const source::RawSample& sample, const pipeline::SampleKey& key, int64_t index,
                   Batch* batch) const;

 private:
  const pipeline::MaskPipeline& of(job::Split split) const;

  std::string name_;
  std::unique_ptr<pipeline::MaskPipeline> train_;  // null: samples have no mask
  std::unique_ptr<pipeline::MaskPipeline> validation_;
};

}  // namespace hetero::feed
