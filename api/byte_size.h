#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

// Amounts of memory as a manifest writes them. Pure.
namespace hetero::api {

// "512Mi" and "2Gi" (kByteSize of field_limits.h) in bytes. None: that is no such text.
std::optional<int64_t> Bytes(std::string_view text);

}  // namespace hetero::api
