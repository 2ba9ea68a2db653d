#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/source/kept_bytes.h"
#include "runtime/storage/store.h"

namespace hetero::source {

// A store of shards that lie compressed (Zstandard) in another store, which reads them as if they
// were not. A shard is read and decompressed whole, whatever is wanted of it; those that were used
// last are kept, up to kKeptBytes in a process. Each thread that reads one which is not kept holds
// it besides, compressed and not.
class UnpackedShards : public storage::Store {
 public:
  static constexpr int64_t kMostBytes = int64_t{256} << 20;  // of a shard, either way
  static constexpr int64_t kKeptBytes = int64_t{512} << 20;

  struct Shard {
    storage::Object packed;
    int64_t bytes = 0;  // once it is decompressed; kMostBytes at most
  };

  // `kept_bytes` is for tests.
  UnpackedShards(std::shared_ptr<const storage::Store> packed, std::vector<Shard> shards,
                 int64_t kept_bytes = kKeptBytes);

  const std::string& uri() const override { return packed_->uri(); }
  // Wherever they lie: of many reads at a time each would hold a shard.
  bool is_remote() const override { return false; }
  // The shards, by the names of their compressed files and with the sizes that they have once they
  // are decompressed.
  absl::StatusOr<std::vector<storage::Object>> List(std::string_view prefix) const override;
  absl::StatusOr<storage::Object> Head(std::string_view name) const override;
  // kDataLoss: what the shard decompresses to has another size, or it is damaged.
  absl::Status Read(const storage::Object& object, int64_t offset,
                    absl::Span<uint8_t> out) const override;

 private:
  absl::StatusOr<KeptBytes::Bytes> Unpack(const Shard& shard) const;

  const std::shared_ptr<const storage::Store> packed_;
  std::map<std::string, Shard, std::less<>> shards_;
  mutable KeptBytes kept_;
};

}  // namespace hetero::source
