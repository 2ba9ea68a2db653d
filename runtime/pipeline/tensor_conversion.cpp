#include "runtime/pipeline/tensor_conversion.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace hetero::pipeline {
namespace {

// Per-channel mean and standard deviation of ImageNet, the usual default for colour pictures.
constexpr double kImageNetMean[] = {0.485, 0.456, 0.406};
constexpr double kImageNetStd[] = {0.229, 0.224, 0.225};
constexpr double kOtherDefault = 0.5;

// One value per channel: `given`, its only value repeated, or the default.
absl::StatusOr<std::vector<float>> PerChannel(const char* name, const std::vector<double>& given,
                                              int32_t channels, const double (&rgb_default)[3]) {
  const size_t count = size_t(channels);
  if (given.empty()) {
    if (channels == 3) return std::vector<float>(std::begin(rgb_default), std::end(rgb_default));
    return std::vector<float>(count, float(kOtherDefault));
  }
  if (given.size() != 1 && given.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat(name, " has ", given.size(),
                                                   " values for pictures of ", channels,
                                                   " channels; give ", channels, " or one"));
  }
  if (!std::all_of(given.begin(), given.end(), [](double v) { return std::isfinite(v); })) {
    return absl::InvalidArgumentError(absl::StrCat(name, " must be finite numbers"));
  }
  if (given.size() == 1) return std::vector<float>(count, float(given[0]));
  return std::vector<float>(given.begin(), given.end());
}

}  // namespace

absl::Status ConversionBuilder::Add(const api::OperatorSpec& spec, int32_t channels) {
  return spec.op == api::OperatorKind::kCast ? AddCast(spec) : AddNormalize(spec, channels);
}

absl::Status ConversionBuilder::AddCast(const api::OperatorSpec& spec) {
  if (*spec.type == api::ElementType::kFloat32) {
    is_float_ = true;
  } else if (is_float_) {
    return absl::InvalidArgumentError(
        "to Uint8 after a conversion to Float32 would lose precision; remove it");
  }
  return absl::OkStatus();
}

absl::Status ConversionBuilder::AddNormalize(const api::OperatorSpec& spec, int32_t channels) {
  if (is_normalized_) return absl::InvalidArgumentError("is given twice; keep one Normalize");
  auto mean = PerChannel("mean", spec.mean, channels, kImageNetMean);
  if (!mean.ok()) return mean.status();
  auto std = PerChannel("std", spec.std, channels, kImageNetStd);
  if (!std.ok()) return std.status();
  if (!std::all_of(std->begin(), std->end(), [](float v) { return v > 0; })) {
    return absl::InvalidArgumentError("std must be greater than 0");
  }
  conversion_.mean = *std::move(mean);
  conversion_.std = *std::move(std);
  is_float_ = true;
  is_normalized_ = true;
  return absl::OkStatus();
}

}  // namespace hetero::pipeline
