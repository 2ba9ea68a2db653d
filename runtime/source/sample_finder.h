#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/hetero_training_job.h"
#include "runtime/source/index_file.h"
#include "runtime/source/sample_table.h"
#include "runtime/source/shard_scan.h"
#include "runtime/source/shard_source.h"
#include "runtime/storage/store.h"
#include "runtime/storage/stores.h"

namespace hetero::source {

// What a format asks of a SampleFinder. What is referred to outlives the call.
struct SampleSearch {
  const storage::Store& store;
  const IndexedShards& shards;
  bool count_classes;  // the highest label has to be found, because nothing says how many there are
  std::function<ShardScan(bool count_classes)> scan;  // goes through one of the shards
};

// How the samples of shards are found, for formats that do not say themselves where they lie.
class SampleFinder {
 public:
  virtual ~SampleFinder() = default;
  // The table of all samples, in the order of the shards.
  virtual absl::StatusOr<SampleTable> Find(const SampleSearch& search) const = 0;
};

// By the finder of `shards`; where there is none, by going through them.
absl::StatusOr<SampleTable> FindSamples(const ShardSource& shards, const SampleSearch& search);

// As a job does: from the index that `source` names; where there is none, by going through the
// shards, and the index is written for the next one. kInvalidArgument: dataset.index.uri cannot be
// an index's; or there is none, and dataset.index.build does not allow to go through so many bytes;
// the message has the command that makes one. Other errors are those of ReadIndex(), of the scan
// and of the stores.
std::unique_ptr<const SampleFinder> FinderOf(const api::DatasetSource& source,
                                             const api::Label& label,
                                             const storage::Stores& stores);

// Most bytes of shards that are gone through without being asked to (dataset.index.build: Auto).
inline constexpr int64_t kMostUnindexedBytes = 10'000'000'000;

// By going through the shards, however large they are.
std::unique_ptr<const SampleFinder> ScanningFinder();

}  // namespace hetero::source
