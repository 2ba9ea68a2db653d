#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "api/hetero_training_job.h"

// What spec.views makes of each training sample. Validation samples have one view, "image".
namespace hetero::api {

// The tensor that every sample has. Without an entry of its own it has one view.
inline constexpr std::string_view kImageView = "image";

// Of "image".
int32_t ImageViews(const Spec& spec);
// All others, in the order of the manifest, which decides their random numbers.
std::vector<View> FurtherViews(const Spec& spec);
// Whether a training sample is more than one picture.
bool HasSeveralViews(const Spec& spec);
// Whether an entry of spec.pipeline is for the view of this name.
bool IsFor(const OperatorSpec& op, std::string_view view);
// Whether a batch or a dumped stream has something else of this name, which no view or mask may
// have then (python/hetero/batch.py, runtime/feed/stream_dump.cpp).
bool IsTakenByBatches(std::string_view name);

}  // namespace hetero::api
