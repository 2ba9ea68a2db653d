#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hetero::source {

enum class Scheme { kSynthetic, kFile };

// Where a dataset is, as far as this runtime can reach.
struct Location {
  Scheme scheme = Scheme::kFile;
  std::string path;  // absolute, without trailing slashes; empty for kSynthetic
};

// Reads a `dataset.uri`: `synthetic://` or `file:///absolute/path` (taken as it stands, no
// percent-decoding). `s3://` gives kUnimplemented; anything else kInvalidArgument with the remedy.
absl::StatusOr<Location> ParseUri(const std::string& uri);

}  // namespace hetero::source
