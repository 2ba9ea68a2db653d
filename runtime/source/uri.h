#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hetero::source {

enum class Scheme { kSynthetic, kFile, kStore };

// Where a dataset is, as far as this runtime can reach.
struct Location {
  Scheme scheme = Scheme::kFile;
  std::string path;  // of kFile: absolute, without trailing slashes; else empty
};

// Reads a `dataset.uri`: `synthetic://`, `file:///absolute/path` (taken as it stands, no
// percent-decoding), `s3://bucket/prefix` or `https://host/path`. Anything else is kInvalidArgument
// with the remedy.
absl::StatusOr<Location> ParseUri(const std::string& uri);

// Whether a web server is asked: nothing is listed there, so a manifest lists what there is.
bool IsWebUri(const std::string& uri);

}  // namespace hetero::source
