// What samples have beside the picture.
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/feed/sample_producer.h"

namespace hetero::feed {

absl::Status SampleProducer::AddMasks(const api::HeteroTrainingJob& job) {
  const api::Dataset& dataset = job.spec.dataset;
  mask_name_ = dataset.mask_name();
  const int32_t fill = dataset.mask.value_or(api::Mask()).fill.value_or(0);
  HETERO_ASSIGN_OR_RETURN(train_mask_,
                          pipeline::MaskPipeline::Create(job.spec.pipeline, train_->image(),
                                                         job::Split::kTrain, mask_name_, fill));
  // A mask is moved where the sample is read; a trainer gets both done.
  train_pipeline_->KeepWhole();
  if (validation_ != nullptr) {
    HETERO_ASSIGN_OR_RETURN(validation_mask_, pipeline::MaskPipeline::Create(
                                                  job.spec.pipeline, validation_->image(),
                                                  job::Split::kValidation, mask_name_, fill));
    validation_pipeline_->KeepWhole();
  }
  fields_ = job::WithMask(fields_, mask_name_, train_mask_->output());
  return absl::OkStatus();
}

const pipeline::MaskPipeline& SampleProducer::mask(job::Split split) const {
  return split == job::Split::kTrain ? *train_mask_ : *validation_mask_;
}

int64_t SampleProducer::mask_bytes(job::Split split) const {
  return train_mask_ == nullptr ? 0 : mask(split).output_bytes();
}

absl::Status SampleProducer::TakeFields(const source::RawSample& sample,
                                        const pipeline::SampleKey& key, int64_t index,
                                        Batch* batch) const {
  size_t taken = 0;  // of what the dataset has read
  for (FieldTensor& field : *batch->fields) {
    const auto size = static_cast<size_t>(field.spec.bytes());
    if (train_mask_ != nullptr && field.spec.name == mask_name_) {
      const std::span<uint8_t> out(field.of(index), size);
      HETERO_RETURN_IF_ERROR(mask(batch->ticket.split).Run(sample, key, out));
    } else if (labels_are_classes_) {
      const int64_t label = sample.label;
      std::memcpy(field.of(index), &label, size);
    } else {
      if (sample.fields.size() - taken < size) {
        return absl::InternalError(absl::StrCat("field ", field.spec.name, " was not read"));
      }
      std::memcpy(field.of(index), sample.fields.data() + taken, size);
      taken += size;
    }
  }
  return absl::OkStatus();
}

}  // namespace hetero::feed
