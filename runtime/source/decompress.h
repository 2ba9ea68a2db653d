#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"

namespace hetero::source {

// Each fills `*out` with the `size` bytes that `bytes` stand for. kDataLoss: they are damaged, or
// stand for another number of bytes; nothing beyond `size` is allocated or written.
absl::Status DecompressSnappy(std::span<const uint8_t> bytes, size_t size,
                              std::vector<uint8_t>* out);
absl::Status DecompressZstd(std::span<const uint8_t> bytes, size_t size, std::vector<uint8_t>* out);
absl::Status DecompressGzip(std::span<const uint8_t> bytes, size_t size, std::vector<uint8_t>* out);

enum class Compression { kNone, kSnappy, kZstd, kGzip };
absl::Status Decompress(Compression compression, std::span<const uint8_t> bytes, size_t size,
                        std::vector<uint8_t>* out);

}  // namespace hetero::source
