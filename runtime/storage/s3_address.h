#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/storage/http/url.h"
#include "runtime/storage/store_options.h"

namespace hetero::storage {

// Where a bucket is, and how its objects are named in a request.
struct S3Address {
  std::string uri;  // "s3://bucket/prefix"
  std::string bucket;
  std::string prefix;  // "prefix/", or ""
  std::string region;
  Url endpoint;  // in its authority is the bucket, where it is not in the path
  bool path_style = false;

  // Escaped: of an object with this key, of the bucket with "".
  std::string Path(const std::string& key) const;
  // Of an object below the prefix.
  std::string Key(std::string_view name) const { return prefix + std::string(name); }
};

// `uri` as "s3://bucket/prefix", the rest from the options and the environment. kInvalidArgument
// names the uri and what it should be.
absl::StatusOr<S3Address> FindS3(const std::string& uri, const StoreOptions& options);

}  // namespace hetero::storage
