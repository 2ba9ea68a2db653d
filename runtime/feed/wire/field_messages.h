#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "runtime/feed/wire/batch.h"
#include "runtime/feed/wire/byte_source.h"

namespace hetero::v1 {
class FieldSet;
class FrameHeader;
}  // namespace hetero::v1

// What a frame's header says of the tensors beside the pictures. Internal to wire.
namespace hetero::feed {

inline constexpr int64_t kMaxTensorBytes = std::numeric_limits<int32_t>::max();

void ToProto(const std::vector<FieldTensor>& fields, v1::FieldSet* out);
// Reads the fields that `header` announces into `batch`, and their bytes into the checksum `*crc`.
// kDataLoss for what cannot be. Memory is taken as bytes come, not as they are announced.
absl::Status ReadFields(const v1::FrameHeader& header, ByteSource* reader, Batch* batch,
                        uint32_t* crc);

}  // namespace hetero::feed
