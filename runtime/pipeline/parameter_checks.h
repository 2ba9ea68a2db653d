#pragma once

#include "absl/status/status.h"
#include "api/hetero_training_job.h"

// Limits of kernels where they are narrower than the manifest's, which every entry has passed. Each
// gives kInvalidArgument, without a place, with the value and the whole interval.
namespace hetero::pipeline {

// A box with a smaller share of the largest picture (kMaxPixels) has no pixel; the smallest ratio
// is the inverse of the manifest's largest.
inline constexpr double kMinScale = 1e-9;
inline constexpr double kMinRatio = 1e-3;

// `name` is the parameter's in the manifest, whose other limit stands in the message.
absl::Status CheckAtLeast(const char* name, const api::Range& range, double low);
absl::Status CheckAtMost(const char* name, const api::Range& range, double high);

// At most kMaxPixels pixels.
absl::Status CheckPixels(const api::Size& size);

}  // namespace hetero::pipeline
