#pragma once

#include "runtime/pipeline/operator.h"
#include "runtime/pipeline/resize.h"

namespace hetero::pipeline {

// The middle of `in`, rounded as torchvision's center_crop; pixels outside the picture are 0.
void CropCenter(const ImageView& in, const api::Size& size, Image* out);

// torchvision's RandomResizedCrop.make_params: the box has `scale` of the area (uniform) and
// `ratio` width / height (log-uniform); after ten boxes that do not fit, the largest central one.
Box DrawCrop(const api::Size& size, const api::Range& scale, const api::Range& ratio,
             job::RandomStream& random);

class CenterCrop final : public Operator {
 public:
  explicit CenterCrop(const api::Size& size) : size_(size) {}

  absl::StatusOr<api::ImageShape> OutputShape(const api::ImageShape& input) const override;
  absl::Status Apply(const ImageView& in, Image* out, job::RandomStream& random) const override;

 private:
  api::Size size_;
};

class RandomResizedCrop final : public CroppingOperator {
 public:
  RandomResizedCrop(const api::Size& size, const api::Range& scale, const api::Range& ratio,
                    api::Interpolation interpolation)
      : size_(size), scale_(scale), ratio_(ratio), interpolation_(interpolation) {}

  absl::StatusOr<api::ImageShape> OutputShape(const api::ImageShape& input) const override;
  absl::Status Apply(const ImageView& in, Image* out, job::RandomStream& random) const override;
  Box Region(const api::ImageShape& input, job::RandomStream& random) const override;
  absl::Status ApplyToRegion(const ImageView& part, const Box& inside, Image* out,
                             job::RandomStream& random) const override;

 private:
  api::Size size_;
  api::Range scale_;
  api::Range ratio_;
  api::Interpolation interpolation_;
};

absl::StatusOr<Operators> MakeCenterCrop(const api::OperatorSpec& spec,
                                         const OperatorContext& context);
absl::StatusOr<Operators> MakeRandomResizedCrop(const api::OperatorSpec& spec,
                                                const OperatorContext& context);

}  // namespace hetero::pipeline
