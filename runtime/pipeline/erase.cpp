#include "runtime/pipeline/erase.h"

#include <cmath>
#include <cstring>

#include "base/status_macros.h"
#include "runtime/pipeline/exact_math.h"
#include "runtime/pipeline/parameter_checks.h"

namespace hetero::pipeline {

std::optional<Box> DrawErased(const api::Size& size, const api::Range& scale,
                              const api::Range& ratio, job::RandomStream& random) {
  constexpr int kAttempts = 10;
  const double area = double(size.height) * size.width;
  const double log_min = ExactLog(ratio.min);
  const double log_max = ExactLog(ratio.max);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double target_area = area * random.Uniform(scale.min, scale.max);
    const double aspect = ExactExp(random.Uniform(log_min, log_max));
    const int64_t height = RoundHalfEven(std::sqrt(target_area * aspect));
    const int64_t width = RoundHalfEven(std::sqrt(target_area / aspect));
    if (height >= size.height || width >= size.width) continue;
    Box box{0, 0, int32_t(height), int32_t(width)};
    box.top = int32_t(random.Below(uint32_t(size.height - box.height + 1)));
    box.left = int32_t(random.Below(uint32_t(size.width - box.width + 1)));
    return box;
  }
  return std::nullopt;
}

void Erase(const Box& box, uint8_t value, Image* image) {
  const size_t channels = size_t(image->shape.channels);
  for (int32_t y = box.top; y < box.top + box.height; ++y) {
    std::memset(image->row(y) + size_t(box.left) * channels, value, size_t(box.width) * channels);
  }
}

absl::StatusOr<api::ImageShape> RandomErasing::OutputShape(const api::ImageShape& input) const {
  return input;
}

absl::Status RandomErasing::Apply(const ImageView& in, Image* out,
                                  job::RandomStream& random) const {
  Copy(in, out);
  if (random.NextDouble() >= probability_) return absl::OkStatus();
  const auto box = DrawErased({in.shape.height, in.shape.width}, scale_, ratio_, random);
  if (box) Erase(*box, value_, out);
  return absl::OkStatus();
}

absl::StatusOr<Operators> MakeRandomErasing(const api::OperatorSpec& spec,
                                            const OperatorContext& context) {
  HETERO_RETURN_IF_ERROR(CheckAtLeast("scale", *spec.scale, kMinScale));
  HETERO_RETURN_IF_ERROR(CheckAtLeast("ratio", *spec.ratio, kMinRatio));
  if (context.split == job::Split::kValidation) return Operators();
  return One<RandomErasing>(*spec.probability, *spec.scale, *spec.ratio, uint8_t(*spec.value));
}

}  // namespace hetero::pipeline
