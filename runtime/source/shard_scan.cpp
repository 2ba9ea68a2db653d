#include "runtime/source/shard_scan.h"

#include <algorithm>
#include <limits>
#include <new>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/source/in_parallel.h"

namespace hetero::source {
namespace {

absl::Status NoMemory(const storage::Store& store) {
  return absl::ResourceExhaustedError(
      absl::StrCat(store.uri(), ": there is no memory for the places of all samples, ",
                   sizeof(SampleLocation), " bytes each; give each process more"));
}

absl::StatusOr<std::vector<SampleLocation>> Scan(const storage::Store& store,
                                                 const std::vector<storage::Object>& shards,
                                                 const ShardScan& scan) {
  std::vector<std::vector<SampleLocation>> found(shards.size());
  HETERO_RETURN_IF_ERROR(InParallel(shards.size(), [&](size_t shard) {
    try {
      BlockReader reader(store, shards[shard]);
      return scan(reader, &found[shard]);
    } catch (const std::bad_alloc&) {
      return NoMemory(store);
    }
  }));
  size_t count = 0;
  for (const auto& samples : found) count += samples.size();
  std::vector<SampleLocation> all;
  all.reserve(count);
  for (size_t shard = 0; shard < found.size(); ++shard) {
    for (SampleLocation& sample : found[shard]) {
      sample.shard = static_cast<uint32_t>(shard);
      all.push_back(sample);
    }
    std::vector<SampleLocation>().swap(found[shard]);
  }
  return all;
}

}  // namespace

uint32_t LengthOfLocation(int64_t length) {
  return static_cast<uint32_t>(std::min<int64_t>(length, std::numeric_limits<uint32_t>::max()));
}

absl::StatusOr<std::vector<SampleLocation>> ScanShards(const storage::Store& store,
                                                       const std::vector<storage::Object>& shards,
                                                       const ShardScan& scan) {
  try {
    return Scan(store, shards, scan);
  } catch (const std::bad_alloc&) {
    return NoMemory(store);
  }
}

}  // namespace hetero::source
