#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "api/hetero_training_job.h"
#include "runtime/pipeline/pipeline.h"

namespace hetero::pipeline {

// Collects the Normalize and Cast entries at the end of spec.pipeline into a TensorConversion.
class ConversionBuilder {
 public:
  // Takes one Normalize or Cast that has passed api::CheckOperator(), on pictures of `channels`
  // channels. kInvalidArgument, without a place, when it is given twice or its numbers do not fit.
  // A Cast to Uint8 changes nothing.
  absl::Status Add(const api::OperatorSpec& spec, int32_t channels);

  // Whether pixels are no longer uint8, so that no operator on uint8 pictures may follow.
  bool converts() const { return is_float_; }
  const TensorConversion& conversion() const { return conversion_; }

 private:
  absl::Status AddCast(const api::OperatorSpec& spec);
  absl::Status AddNormalize(const api::OperatorSpec& spec, int32_t channels);

  TensorConversion conversion_;
  bool is_float_ = false;
  bool is_normalized_ = false;
};

}  // namespace hetero::pipeline
