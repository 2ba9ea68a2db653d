#include "runtime/pipeline/rand_augment.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/pipeline/colour.h"
#include "runtime/pipeline/exact_math.h"
#include "runtime/pipeline/scratch.h"
#include "runtime/pipeline/tone.h"
#include "runtime/pipeline/warp.h"

namespace hetero::pipeline {
namespace {

// Part of the whole range that a magnitude stands for.
double Share(int32_t magnitude) { return double(magnitude) / kMaxMagnitude; }

// The largest translation is 150/331 of the edge, in whole pixels.
int64_t Translation(int32_t edge, int32_t magnitude) {
  return int64_t{150} * edge * magnitude / (331 * kMaxMagnitude);
}

// Shears are about the picture's corner, so the centre moves along.
AffineMap ShearX(double level, const api::ImageShape& shape) {
  return {.xy = level, .x0 = level * shape.height / 2};
}

AffineMap ShearY(double level, const api::ImageShape& shape) {
  return {.yx = level, .y0 = level * shape.width / 2};
}

}  // namespace

void Augment(const ImageView& in, Augmentation augmentation, int32_t magnitude, bool negative,
             Image* out) {
  const double sign = negative ? -1 : 1;
  const double shear = sign * 0.3 * Share(magnitude);
  const double factor = 1 + sign * 0.9 * Share(magnitude);
  const auto warp = [&](const AffineMap& map) { Warp(in, map, api::Interpolation::kNearest, out); };
  const auto adjust = [&](void (*adjustment)(double, Image*)) {
    Copy(in, out);
    adjustment(factor, out);
  };
  switch (augmentation) {
    case Augmentation::kIdentity:
      return Copy(in, out);
    case Augmentation::kShearX:
      return warp(ShearX(shear, in.shape));
    case Augmentation::kShearY:
      return warp(ShearY(shear, in.shape));
    case Augmentation::kTranslateX:
      return warp({.x0 = -sign * double(Translation(in.shape.width, magnitude))});
    case Augmentation::kTranslateY:
      return warp({.y0 = -sign * double(Translation(in.shape.height, magnitude))});
    case Augmentation::kRotate:
      return warp(Rotation(sign * 30 * Share(magnitude)));
    case Augmentation::kBrightness:
      return adjust(AdjustBrightness);
    case Augmentation::kColor:
      return adjust(AdjustSaturation);
    case Augmentation::kContrast:
      return adjust(AdjustContrast);
    case Augmentation::kSharpness:
      return adjust(AdjustSharpness);
    case Augmentation::kPosterize:
      Copy(in, out);
      return Posterize(8 - int32_t(RoundHalfEven(4 * Share(magnitude))), out);
    case Augmentation::kSolarize:
      Copy(in, out);
      // The threshold is 255 * (1 - share); pixels are whole, so it is rounded up.
      return Solarize((17 * (kMaxMagnitude - magnitude) + 1) / 2, out);
    case Augmentation::kAutoContrast:
      Copy(in, out);
      return AutoContrast(out);
    case Augmentation::kEqualize:
      Copy(in, out);
      return Equalize(out);
  }
}

absl::StatusOr<api::ImageShape> RandAugment::OutputShape(const api::ImageShape& input) const {
  if (input.channels != 1 && input.channels != 3) {
    return absl::InvalidArgumentError(absl::StrCat("takes 1 or 3 channels, not ", input.channels));
  }
  if (std::max(input.height, input.width) > kMaxWarpEdge) {
    return absl::InvalidArgumentError(absl::StrCat(
        "takes edges up to ", kMaxWarpEdge, " pixels, not ", ToString(input), "; resize first"));
  }
  return input;
}

absl::Status RandAugment::Apply(const ImageView& in, Image* out, job::RandomStream& random) const {
  if (const auto shape = OutputShape(in.shape); !shape.ok()) {
    return absl::DataLossError(absl::StrCat("RandAugment ", shape.status().message()));
  }
  static thread_local Image before;
  static thread_local const KeptBuffer kept(&before.bytes);
  Copy(in, out);
  for (int32_t i = 0; i < operations_; ++i) {
    const auto augmentation = Augmentation(random.Below(kAugmentations));
    const bool negative = random.Below(2) == 0;
    if (augmentation == Augmentation::kIdentity) continue;
    std::swap(before, *out);
    Augment(before.view(), augmentation, magnitude_, negative, out);
  }
  return absl::OkStatus();
}

absl::StatusOr<Operators> MakeRandAugment(const api::OperatorSpec& spec,
                                          const OperatorContext& context) {
  if (context.split == job::Split::kValidation) return Operators();
  return One<RandAugment>(*spec.operations, *spec.magnitude);
}

}  // namespace hetero::pipeline
