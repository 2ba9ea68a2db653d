#pragma once

#include <optional>

#include "runtime/pipeline/operator.h"
#include "runtime/pipeline/resize.h"

namespace hetero::pipeline {

// torchvision's RandomErasing.make_params: the box has `scale` of the area (uniform) and `ratio`
// height / width (log-uniform) and is smaller than the picture on both axes; none after ten boxes
// that are not.
std::optional<Box> DrawErased(const api::Size& size, const api::Range& scale,
                              const api::Range& ratio, job::RandomStream& random);

// Sets every channel inside `box` to `value`.
void Erase(const Box& box, uint8_t value, Image* image);

// Erases one box with `probability`, else copies.
class RandomErasing final : public Operator {
 public:
  RandomErasing(double probability, const api::Range& scale, const api::Range& ratio, uint8_t value)
      : probability_(probability), scale_(scale), ratio_(ratio), value_(value) {}

  absl::StatusOr<api::ImageShape> OutputShape(const api::ImageShape& input) const override;
  absl::Status Apply(const ImageView& in, Image* out, job::RandomStream& random) const override;

 private:
  double probability_;
  api::Range scale_;
  api::Range ratio_;
  uint8_t value_;
};

absl::StatusOr<Operators> MakeRandomErasing(const api::OperatorSpec& spec,
                                            const OperatorContext& context);

}  // namespace hetero::pipeline
