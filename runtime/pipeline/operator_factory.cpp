#include "runtime/pipeline/operator_factory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/pipeline/colour.h"
#include "runtime/pipeline/crop.h"
#include "runtime/pipeline/delay.h"
#include "runtime/pipeline/erase.h"
#include "runtime/pipeline/exact_math.h"
#include "runtime/pipeline/flip.h"
#include "runtime/pipeline/gaussian_blur.h"
#include "runtime/pipeline/grayscale.h"
#include "runtime/pipeline/plugin_operator.h"
#include "runtime/pipeline/rand_augment.h"
#include "runtime/pipeline/resize.h"
#include "runtime/pipeline/warp.h"

namespace hetero::pipeline {
namespace {

using Operators = std::vector<std::unique_ptr<Operator>>;
using OperatorsOr = absl::StatusOr<Operators>;
using job::Split;

constexpr api::Range kDefaultScale{0.08, 1.0};
constexpr api::Range kDefaultRatio{3.0 / 4.0, 4.0 / 3.0};
constexpr api::Range kDefaultErasedScale{0.02, 0.33};
constexpr api::Range kDefaultErasedRatio{0.3, 3.3};
constexpr api::Range kDefaultSigma{0.1, 2.0};
// Keeps the Gaussian's exponents and weights in their normal range.
constexpr double kMinSigma = 1e-3;
constexpr int32_t kMaxKernelSize = 1023;

template <typename T, typename... Args>
Operators One(Args&&... args) {
  Operators operators;
  operators.push_back(std::make_unique<T>(std::forward<Args>(args)...));
  return operators;
}

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::Status CheckSize(const std::optional<api::Size>& size) {
  if (!size) return Invalid("needs size: {height, width}");
  if (size->height < 1 || size->width < 1 || int64_t{size->height} * size->width > kMaxPixels) {
    return Invalid("size ", size->height, "x", size->width, " must be at least 1x1 and at most ",
                   kMaxPixels, " pixels");
  }
  return absl::OkStatus();
}

absl::Status CheckRange(const char* name, const api::Range& range, double low, double high) {
  // Written so that NaN is refused too.
  if (range.min >= low && range.min <= range.max && range.max <= high) return absl::OkStatus();
  return Invalid(name, " {min: ", range.min, ", max: ", range.max, "} must lie in [", low, ", ",
                 high, "] with min <= max");
}

absl::Status CheckProbability(double probability) {
  if (probability >= 0 && probability <= 1) return absl::OkStatus();
  return Invalid("probability ", probability, " must lie in [0, 1]");
}

api::Interpolation InterpolationOf(const api::OperatorSpec& spec) {
  return spec.interpolation.value_or(api::Interpolation::kBilinear);
}

OperatorsOr MakeResize(const api::OperatorSpec& spec) {
  if (spec.shorter_side.has_value() == spec.size.has_value()) {
    return Invalid("needs either size: {height, width} or shorterSide");
  }
  if (!spec.shorter_side) {
    if (absl::Status status = CheckSize(spec.size); !status.ok()) return status;
    return One<Resize>(*spec.size, InterpolationOf(spec));
  }
  if (*spec.shorter_side < 1) return Invalid("shorterSide must be at least 1");
  return One<Resize>(*spec.shorter_side, InterpolationOf(spec));
}

OperatorsOr MakeCenterCrop(const api::OperatorSpec& spec) {
  if (absl::Status status = CheckSize(spec.size); !status.ok()) return status;
  return One<CenterCrop>(*spec.size);
}

OperatorsOr MakeRandomResizedCrop(const api::OperatorSpec& spec, Split split) {
  if (absl::Status status = CheckSize(spec.size); !status.ok()) return status;
  const api::Range scale = spec.scale.value_or(kDefaultScale);
  const api::Range ratio = spec.ratio.value_or(kDefaultRatio);
  if (absl::Status status = CheckRange("scale", scale, 1e-9, 1); !status.ok()) return status;
  if (absl::Status status = CheckRange("ratio", ratio, 1e-3, 1e3); !status.ok()) return status;
  if (split == Split::kTrain) {
    return One<RandomResizedCrop>(*spec.size, scale, ratio, InterpolationOf(spec));
  }
  const int32_t edge = std::min(spec.size->height, spec.size->width);
  Operators operators =
      One<Resize>(int32_t(RoundHalfEven(edge * 256.0 / 224.0)), InterpolationOf(spec));
  operators.push_back(std::make_unique<CenterCrop>(*spec.size));
  return operators;
}

template <class Flip>
OperatorsOr MakeFlip(const api::OperatorSpec& spec, Split split) {
  const double probability = spec.probability.value_or(0.5);
  if (absl::Status status = CheckProbability(probability); !status.ok()) return status;
  if (split == Split::kValidation) return Operators();
  return One<Flip>(probability);
}

OperatorsOr MakeRotate(const api::OperatorSpec& spec, Split split) {
  if (!spec.degrees) return Invalid("needs degrees: {min, max}");
  absl::Status status = CheckRange("degrees", *spec.degrees, -360, 360);
  if (!status.ok()) return status;
  if (split == Split::kValidation) return Operators();
  return One<Rotate>(*spec.degrees, spec.interpolation.value_or(api::Interpolation::kNearest));
}

OperatorsOr MakeRandomErasing(const api::OperatorSpec& spec, Split split) {
  const double probability = spec.probability.value_or(0.5);
  const api::Range scale = spec.scale.value_or(kDefaultErasedScale);
  const api::Range ratio = spec.ratio.value_or(kDefaultErasedRatio);
  const double value = spec.value.value_or(0);
  absl::Status status = CheckProbability(probability);
  status.Update(CheckRange("scale", scale, 1e-9, 1));
  status.Update(CheckRange("ratio", ratio, 1e-3, 1e3));
  if (!status.ok()) return status;
  if (!(value >= 0 && value <= 255)) return Invalid("value ", value, " must lie in [0, 255]");
  if (split == Split::kValidation) return Operators();
  return One<RandomErasing>(probability, scale, ratio, uint8_t(value));
}

OperatorsOr MakeRandAugment(const api::OperatorSpec& spec, Split split) {
  const int32_t operations = spec.operations.value_or(2);
  const int32_t magnitude = spec.magnitude.value_or(9);
  if (operations < 1) return Invalid("operations must be at least 1, not ", operations);
  if (magnitude < 0 || magnitude > kMaxMagnitude) {
    return Invalid("magnitude ", magnitude, " must lie in [0, ", kMaxMagnitude, "]");
  }
  if (split == Split::kValidation) return Operators();
  return One<RandAugment>(operations, magnitude);
}

OperatorsOr MakeGrayscale(const api::OperatorSpec& spec, int32_t channels, Split split) {
  const double probability = spec.probability.value_or(1);
  if (absl::Status status = CheckProbability(probability); !status.ok()) return status;
  const int32_t output = spec.output_channels.value_or(probability < 1 ? channels : 1);
  if (output != 1 && output != 3) return Invalid("outputChannels must be 1 or 3, not ", output);
  // Built in validation too, so that both splits refuse the same manifests; probability 0 copies.
  const bool skipped = split == Split::kValidation && probability < 1;
  return One<Grayscale>(output, skipped ? 0 : probability);
}

OperatorsOr MakeColorJitter(const api::OperatorSpec& spec, Split split) {
  const ColorJitter::Ranges ranges{spec.brightness, spec.contrast, spec.saturation, spec.hue};
  const auto check = [](const char* name, const std::optional<api::Range>& range, double low,
                        double high) {
    return range ? CheckRange(name, *range, low, high) : absl::OkStatus();
  };
  absl::Status status = check("brightness", ranges.brightness, 0, kMaxColourFactor);
  status.Update(check("contrast", ranges.contrast, 0, kMaxColourFactor));
  status.Update(check("saturation", ranges.saturation, 0, kMaxColourFactor));
  status.Update(check("hue", ranges.hue, -0.5, 0.5));
  if (!status.ok()) return status;
  if (split == Split::kValidation) return Operators();
  return One<ColorJitter>(ranges);
}

OperatorsOr MakeGaussianBlur(const api::OperatorSpec& spec, Split split) {
  if (!spec.kernel_size) return Invalid("needs kernelSize");
  if (*spec.kernel_size < 1 || *spec.kernel_size > kMaxKernelSize || *spec.kernel_size % 2 == 0) {
    return Invalid("kernelSize ", *spec.kernel_size, " must be odd and at most ", kMaxKernelSize);
  }
  api::Range sigma = spec.sigma.value_or(kDefaultSigma);
  if (absl::Status status = CheckRange("sigma", sigma, kMinSigma, 1e6); !status.ok()) return status;
  if (split == Split::kValidation) sigma.min = sigma.max = (sigma.min + sigma.max) / 2;
  return One<GaussianBlur>(*spec.kernel_size, sigma);
}

OperatorsOr MakePlugin(const api::OperatorSpec& spec, Split split) {
  if (spec.path.empty() || spec.name.empty()) return Invalid("needs path and name");
  auto op = LoadPluginOperator(spec.path, spec.name, spec.parameters, split == Split::kTrain);
  if (!op.ok()) return op.status();
  Operators operators;
  operators.push_back(*std::move(op));
  return operators;
}

OperatorsOr MakeDelay(const api::OperatorSpec& spec, base::Clock& clock) {
  if (!spec.milliseconds || *spec.milliseconds < 0) return Invalid("needs milliseconds >= 0");
  return One<Delay>(std::chrono::milliseconds(*spec.milliseconds), clock);
}

}  // namespace

const char* OperatorName(api::OperatorKind kind) {
  switch (kind) {
    case api::OperatorKind::kDecode:
      return "Decode";
    case api::OperatorKind::kResize:
      return "Resize";
    case api::OperatorKind::kCenterCrop:
      return "CenterCrop";
    case api::OperatorKind::kRandomResizedCrop:
      return "RandomResizedCrop";
    case api::OperatorKind::kHorizontalFlip:
      return "HorizontalFlip";
    case api::OperatorKind::kVerticalFlip:
      return "VerticalFlip";
    case api::OperatorKind::kRotate:
      return "Rotate";
    case api::OperatorKind::kColorJitter:
      return "ColorJitter";
    case api::OperatorKind::kGrayscale:
      return "Grayscale";
    case api::OperatorKind::kGaussianBlur:
      return "GaussianBlur";
    case api::OperatorKind::kRandomErasing:
      return "RandomErasing";
    case api::OperatorKind::kRandAugment:
      return "RandAugment";
    case api::OperatorKind::kNormalize:
      return "Normalize";
    case api::OperatorKind::kCast:
      return "Cast";
    case api::OperatorKind::kDelay:
      return "Delay";
    case api::OperatorKind::kPlugin:
      return "Plugin";
  }
  return "";
}

OperatorsOr MakeOperators(const api::OperatorSpec& spec, int32_t channels, Split split,
                          base::Clock& clock) {
  switch (spec.op) {
    case api::OperatorKind::kResize:
      return MakeResize(spec);
    case api::OperatorKind::kCenterCrop:
      return MakeCenterCrop(spec);
    case api::OperatorKind::kRandomResizedCrop:
      return MakeRandomResizedCrop(spec, split);
    case api::OperatorKind::kHorizontalFlip:
      return MakeFlip<HorizontalFlip>(spec, split);
    case api::OperatorKind::kVerticalFlip:
      return MakeFlip<VerticalFlip>(spec, split);
    case api::OperatorKind::kRotate:
      return MakeRotate(spec, split);
    case api::OperatorKind::kRandomErasing:
      return MakeRandomErasing(spec, split);
    case api::OperatorKind::kRandAugment:
      return MakeRandAugment(spec, split);
    case api::OperatorKind::kColorJitter:
      return MakeColorJitter(spec, split);
    case api::OperatorKind::kGrayscale:
      return MakeGrayscale(spec, channels, split);
    case api::OperatorKind::kGaussianBlur:
      return MakeGaussianBlur(spec, split);
    case api::OperatorKind::kDelay:
      return MakeDelay(spec, clock);
    case api::OperatorKind::kDecode:
    case api::OperatorKind::kNormalize:
    case api::OperatorKind::kCast:
      return Invalid("is not an operator on uint8 pictures");
    case api::OperatorKind::kPlugin:
      return MakePlugin(spec, split);
  }
  return Invalid("is unknown");
}

}  // namespace hetero::pipeline
