#include "runtime/source/shard_scan.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <new>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"

namespace hetero::source {
namespace {

// Each holds one block, and a remote store answers each in turn.
constexpr size_t kMaxThreads = 8;

absl::Status NoMemory(const storage::Store& store) {
  return absl::ResourceExhaustedError(
      absl::StrCat(store.uri(), ": there is no memory for the places of all samples, ",
                   sizeof(SampleLocation), " bytes each; give each process more"));
}

class Scanner {
 public:
  Scanner(const storage::Store& store, const std::vector<storage::Object>& shards,
          const ShardScan& scan)
      : store_(store),
        shards_(shards),
        scan_(scan),
        found_(shards.size()),
        statuses_(shards.size()),
        first_bad_(shards.size()) {}

  absl::StatusOr<std::vector<SampleLocation>> Run() {
    {
      std::vector<std::jthread> threads;
      try {
        for (size_t i = 1; i < std::min(shards_.size(), kMaxThreads); ++i) {
          threads.emplace_back([this] { Work(); });
        }
      } catch (const std::system_error&) {
        // No more threads are allowed here; those that there are take all shards.
      }
      Work();
    }
    if (first_bad_ < shards_.size()) return statuses_[first_bad_];
    std::vector<SampleLocation> all;
    size_t count = 0;
    for (const auto& samples : found_) count += samples.size();
    all.reserve(count);
    for (size_t shard = 0; shard < found_.size(); ++shard) {
      for (SampleLocation& sample : found_[shard]) {
        sample.shard = static_cast<uint32_t>(shard);
        all.push_back(sample);
      }
      std::vector<SampleLocation>().swap(found_[shard]);
    }
    return all;
  }

 private:
  // Takes shards in their order, so that all before the first bad one are scanned.
  void Work() {
    for (size_t shard = next_++; shard < first_bad_; shard = next_++) {
      statuses_[shard] = Scan(shard);
      if (statuses_[shard].ok()) continue;
      size_t first = first_bad_;
      while (shard < first && !first_bad_.compare_exchange_weak(first, shard)) {
      }
    }
  }

  absl::Status Scan(size_t shard) {
    try {
      BlockReader reader(store_, shards_[shard]);
      return scan_(reader, &found_[shard]);
    } catch (const std::bad_alloc&) {
      return NoMemory(store_);
    }
  }

  const storage::Store& store_;
  const std::vector<storage::Object>& shards_;
  const ShardScan& scan_;
  std::vector<std::vector<SampleLocation>> found_;
  std::vector<absl::Status> statuses_;
  std::atomic<size_t> next_ = 0;
  std::atomic<size_t> first_bad_;
};

}  // namespace

uint32_t LengthOfLocation(int64_t length) {
  return static_cast<uint32_t>(std::min<int64_t>(length, std::numeric_limits<uint32_t>::max()));
}

absl::StatusOr<std::vector<SampleLocation>> ScanShards(const storage::Store& store,
                                                       const std::vector<storage::Object>& shards,
                                                       const ShardScan& scan) {
  try {
    return Scanner(store, shards, scan).Run();
  } catch (const std::bad_alloc&) {
    return NoMemory(store);
  }
}

}  // namespace hetero::source
