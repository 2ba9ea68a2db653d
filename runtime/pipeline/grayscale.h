#pragma once

#include "runtime/pipeline/operator.h"

namespace hetero::pipeline {

// Luma of `in` in `output_channels` (1 or 3) equal channels; torchvision's rgb_to_grayscale. A
// picture of one channel is repeated. `in` has 1 or 3 channels.
void ToGrayscale(const ImageView& in, int32_t output_channels, Image* out);

class Grayscale final : public Operator {
 public:
  // With a probability below 1 the channels must stay as many, else shapes would vary.
  Grayscale(int32_t output_channels, double probability)
      : output_channels_(output_channels), probability_(probability) {}

  absl::StatusOr<api::ImageShape> OutputShape(const api::ImageShape& input) const override;
  absl::Status Apply(const ImageView& in, Image* out, job::RandomStream& random) const override;

 private:
  int32_t output_channels_;
  double probability_;
};

absl::StatusOr<Operators> MakeGrayscale(const api::OperatorSpec& spec,
                                        const OperatorContext& context);

}  // namespace hetero::pipeline
