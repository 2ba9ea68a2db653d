#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/storage/store.h"

namespace hetero::source {

class SampleFinder;

// Where the files of a dataset are.
struct ShardSource {
  std::shared_ptr<const storage::Store> store;
  // Those that the URI names, relative to the store's root, in its order; empty: what lies there.
  std::vector<std::string> names;
  // What lies there, where it was listed already; null: it was not. A listing takes a request for
  // a thousand objects.
  std::shared_ptr<const std::vector<storage::Object>> listed;
  // Finds the samples for formats without an index of their own; null: by going through the shards.
  std::shared_ptr<const SampleFinder> finder;

  // List("") of the store, once.
  absl::StatusOr<std::vector<storage::Object>> List() const;
};

// A URI whose last part names several files: "file:///data/train-{000000..000127}.tar" is
// "file:///data" and 128 names.
struct NamedFiles {
  std::string folder;
  std::vector<std::string> names;  // empty: the URI names a folder, and `folder` is all of it
};

// Ranges stand in the URI's last part, several ones count like an odometer; both ends of a range
// have the same number of digits, or none has leading zeros. kInvalidArgument names the range that
// is none, and a URI with more than a million files or with ranges elsewhere.
absl::StatusOr<NamedFiles> ExpandRanges(const std::string& uri);

// A URI whose last part ends as a shard's name does, "s3://bucket/photos.tar", as its folder and
// that name; nothing where it does not. It may be a folder's all the same: "train.parquet".
std::optional<NamedFiles> AsOneFile(const std::string& uri);

// Whether a URI names files, by ranges or as AsOneFile() takes it.
bool NamesFiles(const std::string& uri);

// What is a shard by its name.
using IsShardName = bool (*)(std::string_view name);

// The shards of a dataset: those that the URI names, else all files below the store's root that are
// shards by name, in the order of their names. Files and folders whose names begin with "." or "_"
// are passed over. kNotFound names what was looked for (`looked_for`) and what is there.
absl::StatusOr<std::vector<storage::Object>> FindShards(const ShardSource& source,
                                                        IsShardName is_shard,
                                                        std::string_view looked_for);

// The objects of these names, in their order, asked for a few at a time.
absl::StatusOr<std::vector<storage::Object>> HeadAll(const storage::Store& store,
                                                     const std::vector<std::string>& names);

// "a, b, c and 2 more", for messages; "nothing".
std::string SummaryOf(const std::vector<std::string>& names);

}  // namespace hetero::source
