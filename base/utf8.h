#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Text for those who take UTF-8 only. Names of files, and messages that carry them, may be any
// bytes, but nobody can read a protobuf message one of whose strings is not UTF-8.
namespace hetero::base {

// Length of the well-formed UTF-8 sequence at the start of `text` (RFC 3629); 0 when there is none.
size_t Utf8SequenceLength(std::string_view text);

// As much of `text` as fits into `max_bytes` without cutting a character. A byte that belongs to no
// well-formed sequence becomes U+FFFD.
std::string ToUtf8(std::string_view text, size_t max_bytes = std::string_view::npos);

}  // namespace hetero::base
