#pragma once

#include "runtime/pipeline/operator.h"

namespace hetero::pipeline {

// Where an output pixel comes from, with both pictures' centres at (0, 0), x to the right and y
// down: x' = xx * x + xy * y + x0, y' = yx * x + yy * y + y0, in pixels.
struct AffineMap {
  double xx = 1, xy = 0, x0 = 0;
  double yx = 0, yy = 1, y0 = 0;
};

// Longest edge of a picture that Warp() takes: coordinates stay within 64 bits.
inline constexpr int32_t kMaxWarpEdge = 16384;

// Counter-clockwise turn about the centre: torchvision's rotate without expand.
AffineMap Rotation(double degrees);

// torchvision's affine with that map: same size, black outside the picture; halves round to even in
// Nearest. Coefficients have 32 fractional bits and absolute values up to 4, offsets up to 2^15.
void Warp(const ImageView& in, const AffineMap& map, api::Interpolation interpolation, Image* out);

// torchvision's RandomRotation: an angle uniform in `degrees`.
class Rotate final : public Operator {
 public:
  Rotate(const api::Range& degrees, api::Interpolation interpolation)
      : degrees_(degrees), interpolation_(interpolation) {}

  absl::StatusOr<api::ImageShape> OutputShape(const api::ImageShape& input) const override;
  absl::Status Apply(const ImageView& in, Image* out, job::RandomStream& random) const override;

 private:
  api::Range degrees_;
  api::Interpolation interpolation_;
};

absl::StatusOr<Operators> MakeRotate(const api::OperatorSpec& spec, const OperatorContext& context);

}  // namespace hetero::pipeline
