#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hetero::storage {

// One object by its whole URI: below the root of its store, which OpenStore() takes.
// "s3://bucket/a/b.jpg" is "a/b.jpg" below "s3://bucket", "file:///a/b.jpg" below "file:///", and
// "https://host/a%20b.jpg" is "a b.jpg" below "https://host".
struct ObjectUri {
  std::string root;
  std::string name;
};

// kInvalidArgument: a scheme that no store has, no name of an object, or a URL with a password, a
// query or a fragment, which is not repeated in the message.
absl::StatusOr<ObjectUri> ParseObjectUri(std::string_view uri);

// As ParseObjectUri(), of any place: the name may be empty, or of a folder, and is not checked.
absl::StatusOr<ObjectUri> SplitUri(std::string_view uri);

// Whether `name` can be an object's below `root`, before its store is asked. kInvalidArgument: it
// is empty or too long, or a part of it is "." or ".."; but for buckets, whose names are any bytes,
// what CheckName() says, too.
absl::Status CheckObjectName(const std::string& root, std::string_view name);

}  // namespace hetero::storage
