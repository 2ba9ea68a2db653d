#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/feed/wire/batch.h"
#include "runtime/job/field_set.h"

namespace hetero::v1 {
class FieldSet;
class FrameHeader;
}  // namespace hetero::v1

// What a frame's header says of the tensors beside the pictures. Internal to wire.
namespace hetero::feed {

inline constexpr int64_t kMaxTensorBytes = std::numeric_limits<int32_t>::max();

void ToProto(const std::vector<FieldTensor>& fields, v1::FieldSet* out);
// What `header` announces, in the order of the bytes; kDataLoss for what cannot be: more than the
// `left` bytes that may still come, say.
absl::StatusOr<std::vector<job::FieldSpec>> AnnouncedFields(const v1::FrameHeader& header,
                                                            size_t left);

}  // namespace hetero::feed
