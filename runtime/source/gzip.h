#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hetero::source {

bool IsGzip(std::span<const uint8_t> bytes);

// Decompresses all members of the gzip file `bytes` into `*out`. `name` stands in messages.
// kDataLoss with the byte offset in the file when it is cut short, damaged or followed by other
// bytes, and when it holds more than `limit` bytes: a small file can unpack to a thousand times as
// much.
absl::Status Gunzip(const std::string& name, std::span<const uint8_t> bytes, int64_t limit,
                    std::vector<uint8_t>* out);

}  // namespace hetero::source
