#pragma once

#include "runtime/pipeline/operator.h"

namespace hetero::pipeline {

// Mirrors left and right.
void FlipHorizontally(const ImageView& in, Image* out);

// Mirrors top and bottom.
void FlipVertically(const ImageView& in, Image* out);

// Mirrors with `probability`, else copies.
class HorizontalFlip final : public Operator {
 public:
  explicit HorizontalFlip(double probability) : probability_(probability) {}

  absl::StatusOr<api::ImageShape> OutputShape(const api::ImageShape& input) const override;
  absl::Status Apply(const ImageView& in, Image* out, job::RandomStream& random) const override;
  absl::Status Transform(const ImageView& in, Image* scratch, job::RandomStream& random,
                         ImageView* result) const override;

 private:
  double probability_;
};

class VerticalFlip final : public Operator {
 public:
  explicit VerticalFlip(double probability) : probability_(probability) {}

  absl::StatusOr<api::ImageShape> OutputShape(const api::ImageShape& input) const override;
  absl::Status Apply(const ImageView& in, Image* out, job::RandomStream& random) const override;
  absl::Status Transform(const ImageView& in, Image* scratch, job::RandomStream& random,
                         ImageView* result) const override;

 private:
  double probability_;
};

absl::StatusOr<Operators> MakeHorizontalFlip(const api::OperatorSpec& spec,
                                             const OperatorContext& context);
absl::StatusOr<Operators> MakeVerticalFlip(const api::OperatorSpec& spec,
                                           const OperatorContext& context);

}  // namespace hetero::pipeline
