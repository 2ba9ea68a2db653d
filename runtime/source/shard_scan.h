#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/source/block_reader.h"
#include "runtime/storage/store.h"

namespace hetero::source {

// Where one sample lies. A dataset keeps one of these for each sample, and nothing else.
struct SampleLocation {
  int64_t offset = 0;   // in its shard: of the picture, or of the record that holds it
  uint32_t length = 0;  // bytes; the most that fits where there are more
  uint32_t shard = 0;
  // The sample's class, where the scan has found it; with a `label_length`, how many bytes behind
  // `offset` its label lies (before it, where negative).
  int32_t label = 0;
  uint32_t label_length = 0;
};
static_assert(sizeof(SampleLocation) == 24);

// `length` as a location has it.
uint32_t LengthOfLocation(int64_t length);

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
