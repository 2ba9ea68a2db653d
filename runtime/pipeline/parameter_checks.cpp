#include "runtime/pipeline/parameter_checks.h"

#include "absl/strings/str_cat.h"
#include "api/operators.h"
#include "runtime/pipeline/image.h"

namespace hetero::pipeline {
namespace {

absl::Status CheckRange(const char* name, const api::Range& range, const api::Range& limits) {
  if (range.min >= limits.min && range.max <= limits.max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " {min: ", range.min, ", max: ", range.max,
                                                 "} must lie in [", limits.min, ", ", limits.max,
                                                 "] with min <= max"));
}

}  // namespace

absl::Status CheckAtLeast(const char* name, const api::Range& range, double low) {
  return CheckRange(name, range, {low, api::LimitsOfParameter(name).max});
}

absl::Status CheckAtMost(const char* name, const api::Range& range, double high) {
  return CheckRange(name, range, {api::LimitsOfParameter(name).min, high});
}

absl::Status CheckPixels(const api::Size& size) {
  if (int64_t{size.height} * size.width <= kMaxPixels) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("size ", size.height, "x", size.width,
                                                 " must be at least 1x1 and at most ", kMaxPixels,
                                                 " pixels"));
}

}  // namespace hetero::pipeline
