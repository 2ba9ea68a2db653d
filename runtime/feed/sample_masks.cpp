#include "runtime/feed/sample_masks.h"

#include <span>
#include <utility>

#include "base/status_macros.h"

namespace hetero::feed {

absl::StatusOr<SampleMasks> SampleMasks::Create(const api::HeteroTrainingJob& job,
                                                const source::Dataset& train,
                                                const source::Dataset* validation) {
  const api::Dataset& dataset = job.spec.dataset;
  SampleMasks masks;
  if (!dataset.has_mask()) return masks;
  masks.name_ = dataset.mask_name();
  const int32_t fill = dataset.mask.value_or(api::Mask()).fill.value_or(0);
  const auto create = [&](const source::Dataset& samples, job::Split split) {
    return pipeline::MaskPipeline::Create(job.spec.pipeline, samples.image(), split, masks.name_,
                                          fill);
  };
  HETERO_ASSIGN_OR_RETURN(masks.train_, create(train, job::Split::kTrain));
  if (validation != nullptr) {
    HETERO_ASSIGN_OR_RETURN(masks.validation_, create(*validation, job::Split::kValidation));
  }
  return masks;
}

const pipeline::MaskPipeline& SampleMasks::of(job::Split split) const {
  return split == job::Split::kTrain ? *train_ : *validation_;
}

int64_t SampleMasks::bytes(job::Split split) const {
  return empty() ? 0 : of(split).output_bytes();
}

job::FieldSet SampleMasks::With(const job::FieldSet& fields) const {
  if (empty()) return fields;
  return job::WithMask(fields, name_, train_->output());
}

absl::Status SampleMasks::Run(const source::RawSample& sample, const pipeline::SampleKey& key,
                              int64_t index, Batch* batch) const {
  if (empty()) return absl::OkStatus();
  for (FieldTensor& field : *batch->fields) {
    if (field.spec.name != name_) continue;
    const std::span<uint8_t> out(field.of(index), static_cast<size_t>(field.spec.bytes()));
    return of(batch->ticket.split).Run(sample, key, out);
  }
  return absl::OkStatus();
}

}  // namespace hetero::feed
