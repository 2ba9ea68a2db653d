#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/source/block_reader.h"
#include "runtime/source/sample_location.h"
#include "runtime/storage/store.h"

namespace hetero::source {

// Appends the samples of one shard, in their order; `shard` is not filled in. Runs in several
// threads, with another shard in each.
using ShardScan =
    std::function<absl::Status(BlockReader& shard, std::vector<SampleLocation>* samples)>;

// The samples of all shards, in the order of the shards and within each as `scan` gives them: the
// same in every process that opens the same data. Shards are scanned in parallel, a few at a time.
// Of several errors the first shard's is returned. kResourceExhausted: there is no memory for so
// many samples.
absl::StatusOr<std::vector<SampleLocation>> ScanShards(const storage::Store& store,
                                                       const std::vector<storage::Object>& shards,
                                                       const ShardScan& scan);

}  // namespace hetero::source
