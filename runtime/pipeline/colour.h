#pragma once

#include <cstdint>
#include <optional>

#include "runtime/pipeline/operator.h"

namespace hetero::pipeline {

// Factors of brightness, contrast and saturation above this are refused: the fixed-point products
// of AdjustSaturation would leave int32.
inline constexpr double kMaxColourFactor = 60;

// ITU-R 601 luma of one pixel with torchvision's coefficients 0.2989, 0.587, 0.114, rounded down.
// Their sum is 0.9999, so white gives 254, as there.
constexpr uint8_t Luma(uint32_t r, uint32_t g, uint32_t b) {
  return uint8_t((2989 * r + 5870 * g + 1140 * b) / 10000);
}

// In place on `height x width x {1, 3}`; torchvision's functions of the same names. Saturation and
// hue leave one channel as it is. `factor` in [0, kMaxColourFactor], hue in [-0.5, 0.5] turns.
void AdjustBrightness(double factor, Image* image);
void AdjustContrast(double factor, Image* image);
void AdjustSaturation(double factor, Image* image);
void AdjustHue(double turns, Image* image);

// torchvision's ColorJitter: the given adjustments in a random order, each factor uniform in its
// range.
class ColorJitter final : public Operator {
 public:
  struct Ranges {
    std::optional<api::Range> brightness;
    std::optional<api::Range> contrast;
    std::optional<api::Range> saturation;
    std::optional<api::Range> hue;
  };
  explicit ColorJitter(const Ranges& ranges) : ranges_(ranges) {}

  absl::StatusOr<api::ImageShape> OutputShape(const api::ImageShape& input) const override;
  absl::Status Apply(const ImageView& in, Image* out, job::RandomStream& random) const override;

 private:
  Ranges ranges_;
};

absl::StatusOr<Operators> MakeColorJitter(const api::OperatorSpec& spec,
                                          const OperatorContext& context);

}  // namespace hetero::pipeline
