#pragma once

#include "base/clock.h"
#include "runtime/pipeline/operator.h"

namespace hetero::pipeline {

// Sleeps and copies: stands for an operator that costs time but no core, in scaling and fault
// tests.
class Delay final : public Operator {
 public:
  Delay(base::Duration duration, base::Clock& clock) : duration_(duration), clock_(clock) {}

  absl::StatusOr<api::ImageShape> OutputShape(const api::ImageShape& input) const override;
  absl::Status Apply(const ImageView& in, Image* out, job::RandomStream&) const override;

 private:
  base::Duration duration_;
  base::Clock& clock_;
};

absl::StatusOr<Operators> MakeDelay(const api::OperatorSpec& spec, const OperatorContext& context);

}  // namespace hetero::pipeline
