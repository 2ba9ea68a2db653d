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
// bytes.
absl::Status Gunzip(const std::string& name, std::span<const uint8_t> bytes,
                    std::vector<uint8_t>* out);

}  // namespace hetero::source
