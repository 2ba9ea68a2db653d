#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/source/dataset.h"

namespace hetero::source {

// Of one picture's file. Pictures of the most pixels that are decoded (pipeline/image.h) fit where
// they are compressed at all.
inline constexpr int64_t kMaxPictureBytes = int64_t{256} << 20;

// How a picture is encoded, by its first bytes. kDataLoss, with `where` and these bytes: it is
// neither JPEG nor PNG.
absl::Status FindEncoding(const std::string& where, std::span<const uint8_t> picture,
                          Encoding* encoding);

// Removes all but `part`, which lies in `*bytes`.
void KeepOnly(std::span<const uint8_t> part, std::vector<uint8_t>* bytes);

}  // namespace hetero::source
