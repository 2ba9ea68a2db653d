#pragma once

#include <cstdint>
#include <optional>

#include "runtime/pipeline/operator.h"

namespace hetero::pipeline {

// Size after scaling the shorter edge of `size` to `shorter_side` and keeping the aspect ratio; the
// longer edge is rounded down, as torchvision's Resize(int) does.
api::Size SizeFromShorterSide(const api::Size& size, int32_t shorter_side);

// Resizes the pixels of `in` inside `box` to `size`, as torchvision.transforms.v2.functional
// resized_crop does on uint8. Bilinear is ATen's antialiased integer path: triangle filter widened
// by the scale when shrinking, weights as int16, horizontal then vertical pass with uint8 in
// between. Nearest is InterpolationMode.NEAREST. Any number of channels; a box of the wanted size
// is copied.
void ResizeBox(const ImageView& in, const Box& box, const api::Size& size,
               api::Interpolation interpolation, Image* out);

class Resize final : public Operator {
 public:
  // To exactly `size`.
  Resize(const api::Size& size, api::Interpolation interpolation)
      : size_(size), interpolation_(interpolation) {}
  // See SizeFromShorterSide().
  Resize(int32_t shorter_side, api::Interpolation interpolation)
      : shorter_side_(shorter_side), interpolation_(interpolation) {}

  absl::StatusOr<api::ImageShape> OutputShape(const api::ImageShape& input) const override;
  absl::Status Apply(const ImageView& in, Image* out, job::RandomStream& random) const override;

 private:
  api::Size SizeFor(const api::ImageShape& input) const;

  std::optional<api::Size> size_;
  int32_t shorter_side_ = 0;
  api::Interpolation interpolation_;
};

absl::StatusOr<Operators> MakeResize(const api::OperatorSpec& spec, const OperatorContext& context);

}  // namespace hetero::pipeline
