#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace hetero::storage {

// Names of objects: paths with "/" whose parts are any bytes but NUL.

// More than any store takes: S3 has 1,024 bytes, a path of Linux 4,096.
inline constexpr size_t kMostNameBytes = 4096;
// More than any folder or bucket has that is read object by object.
inline constexpr size_t kMostListedObjects = size_t{50} << 20;

// kInvalidArgument, with `uri` as the root's, for what names nothing below a root or could leave
// it: an empty name, one that begins or ends with "/", has an empty part, "." or "..", or a NUL.
absl::Status CheckName(std::string_view uri, std::string_view name);
// The same for the beginning of names: it may be empty or end anywhere.
absl::Status CheckPrefix(std::string_view uri, std::string_view prefix);

// "bytes 0 to 99", for messages; "no bytes" when there are none.
std::string RangeText(int64_t offset, int64_t length);

struct Object;
// kOutOfRange where `object` has not all these bytes, kInvalidArgument for a negative offset.
absl::Status CheckRange(std::string_view uri, const Object& object, int64_t offset, size_t length);

}  // namespace hetero::storage
