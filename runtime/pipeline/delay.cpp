#include "runtime/pipeline/delay.h"

#include <chrono>

namespace hetero::pipeline {

absl::StatusOr<api::ImageShape> Delay::OutputShape(const api::ImageShape& input) const {
  return input;
}

absl::Status Delay::Apply(const ImageView& in, Image* out, job::RandomStream&) const {
  clock_.SleepFor(duration_);
  Copy(in, out);
  return absl::OkStatus();
}

absl::StatusOr<Operators> MakeDelay(const api::OperatorSpec& spec, const OperatorContext& context) {
  return One<Delay>(std::chrono::milliseconds(*spec.milliseconds), context.clock);
}

}  // namespace hetero::pipeline
