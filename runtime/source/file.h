#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hetero::source {

// Reads the whole of `path` into `*bytes`, reusing its memory. Errors carry the path and the
// system's reason. kDataLoss: the file has more than `limit` bytes, of which none was read and for
// which no memory was asked. Any other error is the storage's fault.
absl::Status ReadFile(const std::string& path, int64_t limit, std::vector<uint8_t>* bytes);

// Creates `path`, which must not exist, with `bytes`. A full disk is reported here, not later.
absl::Status WriteFile(const std::string& path, std::span<const uint8_t> bytes);

// The first bytes (at most eight) as "ff d8 ff e0", for messages; "nothing" when empty.
std::string FirstBytes(std::span<const uint8_t> bytes);

}  // namespace hetero::source
