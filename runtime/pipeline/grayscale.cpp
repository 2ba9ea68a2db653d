#include "runtime/pipeline/grayscale.h"

#include "absl/strings/str_cat.h"
#include "runtime/pipeline/colour.h"

namespace hetero::pipeline {

void ToGrayscale(const ImageView& in, int32_t output_channels, Image* out) {
  out->Reshape({in.shape.height, in.shape.width, output_channels});
  const size_t pixels = size_t(in.shape.height) * size_t(in.shape.width);
  const uint8_t* source = in.data;
  uint8_t* target = out->bytes.data();
  for (size_t i = 0; i < pixels; ++i) {
    const uint8_t luma = in.shape.channels == 3 ? Luma(source[0], source[1], source[2]) : source[0];
    source += in.shape.channels;
    for (int32_t c = 0; c < output_channels; ++c) *target++ = luma;
  }
}

absl::StatusOr<api::ImageShape> Grayscale::OutputShape(const api::ImageShape& input) const {
  if (input.channels != 1 && input.channels != 3) {
    return absl::InvalidArgumentError(absl::StrCat("takes 1 or 3 channels, not ", input.channels));
  }
  if (probability_ < 1 && output_channels_ != input.channels) {
    return absl::InvalidArgumentError(
        absl::StrCat("with a probability below 1 would give ", output_channels_, " or ",
                     input.channels, " channels; set outputChannels: ", input.channels));
  }
  return api::ImageShape{input.height, input.width, output_channels_};
}

absl::Status Grayscale::Apply(const ImageView& in, Image* out, job::RandomStream& random) const {
  if (probability_ >= 1 || random.NextDouble() < probability_) {
    ToGrayscale(in, output_channels_, out);
  } else {
    Copy(in, out);
  }
  return absl::OkStatus();
}

absl::StatusOr<Operators> MakeGrayscale(const api::OperatorSpec& spec,
                                        const OperatorContext& context) {
  const double probability = *spec.probability;
  // Built in validation too, so that both splits refuse the same manifests; probability 0 copies.
  const bool skipped = context.split == job::Split::kValidation && probability < 1;
  return One<Grayscale>(*spec.output_channels, skipped ? 0 : probability);
}

}  // namespace hetero::pipeline
