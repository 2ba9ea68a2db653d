#include "runtime/local/pack_shard.h"

#include "base/crc32c.h"
#include "base/status_macros.h"

namespace hetero::local {

PackShard::PackShard(std::string name, std::unique_ptr<storage::ObjectWriter> writer)
    : writer_(std::move(writer)) {
  shard_.name = std::move(name);
}

absl::Status PackShard::Add(int64_t id, const source::RawSample& sample) {
  HETERO_RETURN_IF_ERROR(Put(id, sample));
  ++shard_.samples;
  return absl::OkStatus();
}

absl::StatusOr<std::pair<PackedShard, storage::Object>> PackShard::Close(
    const std::stop_token& stop) {
  HETERO_RETURN_IF_ERROR(Finish(stop));
  HETERO_ASSIGN_OR_RETURN(const storage::Object object, writer_->Close());
  shard_.version = object.version;
  return std::make_pair(shard_, object);
}

absl::Status PackShard::Append(absl::Span<const uint8_t> bytes) {
  shard_.bytes += static_cast<int64_t>(bytes.size());
  shard_.crc = base::Crc32c(bytes.data(), bytes.size(), shard_.crc);
  return writer_->Append(bytes);
}

}  // namespace hetero::local
