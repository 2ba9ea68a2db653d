#include "runtime/source/uri.h"

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hetero::source {

absl::StatusOr<Location> ParseUri(const std::string& uri) {
  absl::string_view rest = uri;
  if (absl::ConsumePrefix(&rest, "synthetic://")) {
    if (!rest.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "dataset.uri \"", uri, "\": synthetic:// takes no path; write \"synthetic://\" and set ",
          "samples, classes and image"));
    }
    return Location{Scheme::kSynthetic, ""};
  }
  if (absl::ConsumePrefix(&rest, "file://")) {
    if (!absl::StartsWith(rest, "/")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "dataset.uri \"", uri, "\": the path must be absolute; write file:///folder/..."));
    }
    while (rest.size() > 1 && absl::ConsumeSuffix(&rest, "/")) {
    }
    return Location{Scheme::kFile, std::string(rest)};
  }
  if (absl::StartsWith(uri, "s3://") || IsWebUri(uri)) return Location{Scheme::kStore, ""};
  return absl::InvalidArgumentError(absl::StrCat(
      "dataset.uri \"", uri,
      "\": not a known address; write file:///absolute/path, s3://bucket/prefix, synthetic://, or ",
      "https://host/path of a manifest or of shards"));
}

bool IsWebUri(const std::string& uri) {
  return absl::StartsWith(uri, "https://") || absl::StartsWith(uri, "http://");
}

}  // namespace hetero::source
