#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/source/shard_source.h"
#include "runtime/storage/stores.h"

namespace hetero::source {

// Where a dataset lies and what lies there, before its format is known.
struct Place {
  std::string uri;                   // without ranges and without a slash at the end
  std::string folder;                // of file://, an absolute path; else empty
  ShardSource shards;                // reaches everything below it
  std::vector<std::string> files;    // names of its files, not of those in folders; sorted
  std::vector<std::string> folders;  // sorted

  // The first bytes of a file, at most `size`; fewer when it has not so many, none when there is no
  // such file.
  absl::StatusOr<std::vector<uint8_t>> FirstBytesOf(const std::string& file, size_t size) const;
};

// Opens the place that `uri` names. `look`: what lies in a store is listed, too; a folder of this
// machine always is. kNotFound: there is no such folder; kInvalidArgument: it is a file.
absl::StatusOr<Place> OpenPlace(const std::string& uri, const storage::Stores& stores, bool look);

}  // namespace hetero::source
