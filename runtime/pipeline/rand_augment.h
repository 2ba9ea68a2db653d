#pragma once

#include "runtime/pipeline/operator.h"

namespace hetero::pipeline {

// The augmentations that RandAugment draws from, in torchvision's order.
enum class Augmentation {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
};
inline constexpr uint32_t kAugmentations = 14;
// Magnitudes are 0..kMaxMagnitude, torchvision's 31 bins.
inline constexpr int32_t kMaxMagnitude = 30;

// Does one augmentation. `negative` turns shears, translations and rotations the other way and
// makes brightness, colour, contrast and sharpness less instead of more.
void Augment(const ImageView& in, Augmentation augmentation, int32_t magnitude, bool negative,
             Image* out);

// torchvision's RandAugment with its defaults (nearest neighbour, black outside): `operations`
// augmentations in a row, each drawn by itself.
class RandAugment final : public Operator {
 public:
  RandAugment(int32_t operations, int32_t magnitude)
      : operations_(operations), magnitude_(magnitude) {}

  absl::StatusOr<api::ImageShape> OutputShape(const api::ImageShape& input) const override;
  absl::Status Apply(const ImageView& in, Image* out, job::RandomStream& random) const override;

 private:
  int32_t operations_;
  int32_t magnitude_;
};

absl::StatusOr<Operators> MakeRandAugment(const api::OperatorSpec& spec,
                                          const OperatorContext& context);

}  // namespace hetero::pipeline
