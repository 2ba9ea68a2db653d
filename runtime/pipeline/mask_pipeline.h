#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/job/schedule.h"
#include "runtime/pipeline/operator.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/source/dataset.h"

namespace hetero::pipeline {

// What spec.pipeline does to a sample's mask: each operator that names it in `also`, with the
// numbers that it draws for the picture and the nearest pixel in the place of a mean; the others do
// nothing. Beside a Pipeline of the same entries. Immutable; Run() may be called from any thread.
class MaskPipeline {
 public:
  // `mask`: what the manifest says of the mask, `name` what it is called in `also`. `input` and
  // `split` as for Pipeline::Create(), which has accepted the operators. kInvalidArgument names the
  // entry that moves the picture alone.
  static absl::StatusOr<std::unique_ptr<MaskPipeline>> Create(
      const std::vector<api::OperatorSpec>& operators, const api::ImageShape& input,
      job::Split split, const std::string& name, int32_t fill);

  // Of every mask.
  api::Size output() const { return output_; }
  int64_t output_bytes() const { return int64_t{output_.height} * output_.width; }

  // Decodes the sample's mask and produces it into `out`, uint8 [height, width], output_bytes()
  // long. The sample's picture has been decoded. kDataLoss: there is no mask, it is no PNG as
  // DecodeMask() takes it, or it has another size than the picture.
  absl::Status Run(const source::RawSample& sample, const SampleKey& key,
                   std::span<uint8_t> out) const;

 private:
  struct Stage {
    std::unique_ptr<Operator> op;
    int32_t position = 0;  // as the Pipeline counts
  };

  MaskPipeline(std::string name, uint8_t fill) : name_(std::move(name)), fill_(fill) {}
  absl::Status RunStages(const source::RawSample& sample, const SampleKey& key,
                         std::span<uint8_t> out) const;
  absl::Status Add(const api::OperatorSpec& spec, int32_t position, job::Split split,
                   api::ImageShape* shape);

  const std::string name_;
  const uint8_t fill_;
  api::Size output_;
  std::vector<Stage> stages_;
};

}  // namespace hetero::pipeline
