#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "api/hetero_training_job.h"

// What the manifest declares about a dataset (`samples`, `classes`, `image`) against what was
// found. Each gives kInvalidArgument with both numbers when they differ, OK when nothing was
// declared.
namespace hetero::source {

absl::Status CheckSamples(std::string_view where, const api::DatasetSource& declared,
                          int64_t found);
absl::Status CheckClasses(std::string_view where, const api::DatasetSource& declared,
                          int32_t found);
absl::Status CheckImage(std::string_view where, const api::DatasetSource& declared,
                        const api::ImageShape& found);

}  // namespace hetero::source
