#include "runtime/source/unpacked_shards.h"

#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/source/decompress.h"

namespace hetero::source {
namespace {

storage::Object ObjectOf(const UnpackedShards::Shard& shard) {
  return {shard.packed.name, shard.bytes, shard.packed.version};
}

}  // namespace

UnpackedShards::UnpackedShards(std::shared_ptr<const storage::Store> packed,
                               std::vector<Shard> shards, int64_t kept_bytes)
    : process_(getpid()), packed_(std::move(packed)), most_kept_(kept_bytes) {
  for (Shard& shard : shards) {
    std::string name = shard.packed.name;
    shards_.emplace(std::move(name), std::move(shard));
  }
}

absl::StatusOr<std::vector<storage::Object>> UnpackedShards::List(std::string_view prefix) const {
  std::vector<storage::Object> found;
  for (const auto& [name, shard] : shards_) {
    if (name.starts_with(prefix)) found.push_back(ObjectOf(shard));
  }
  return found;
}

absl::StatusOr<storage::Object> UnpackedShards::Head(std::string_view name) const {
  const auto found = shards_.find(name);
  if (found != shards_.end()) return ObjectOf(found->second);
  return absl::NotFoundError(
      absl::StrCat(uri(), "/", absl::string_view(name.data(), name.size()), ": is no shard"));
}

absl::Status UnpackedShards::Read(const storage::Object& object, int64_t offset,
                                  absl::Span<uint8_t> out) const {
  if (out.empty()) return absl::OkStatus();
  const auto found = shards_.find(object.name);
  if (found == shards_.end()) return Head(object.name).status();
  const int64_t size = found->second.bytes;
  if (offset < 0 || offset > size || out.size() > static_cast<uint64_t>(size - offset)) {
    return absl::OutOfRangeError(absl::StrCat(uri(), "/", object.name, ": has ", size,
                                              " bytes, and ", out.size(), " from ", offset,
                                              " on are wanted"));
  }
  HETERO_ASSIGN_OR_RETURN(const Bytes bytes, Find(found->first, found->second));
  std::memcpy(out.data(), bytes->data() + offset, out.size());
  return absl::OkStatus();
}

absl::StatusOr<UnpackedShards::Bytes> UnpackedShards::Unpack(const Shard& shard) const {
  std::vector<uint8_t> packed(static_cast<size_t>(shard.packed.size));
  HETERO_RETURN_IF_ERROR(packed_->Read(shard.packed, 0, absl::MakeSpan(packed)));
  auto bytes = std::make_shared<std::vector<uint8_t>>();
  const absl::Status status = DecompressZstd(packed, static_cast<size_t>(shard.bytes), bytes.get());
  if (status.ok()) return bytes;
  return absl::DataLossError(absl::StrCat(uri(), "/", shard.packed.name, ": ", status.message(),
                                          "; copy the dataset again"));
}

absl::StatusOr<UnpackedShards::Bytes> UnpackedShards::Find(const std::string& name,
                                                           const Shard& shard) const {
  if (getpid() != process_) return Unpack(shard);
  {
    base::MutexLock lock(mutex_);
    for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
      if (kept->name != name) continue;
      kept_.splice(kept_.begin(), kept_, kept);
      return kept_.front().bytes;
    }
  }
  // Without the lock: other shards are read and decompressed meanwhile. So may be this one.
  HETERO_ASSIGN_OR_RETURN(const Bytes bytes, Unpack(shard));
  base::MutexLock lock(mutex_);
  Keep(name, bytes);
  return bytes;
}

void UnpackedShards::Keep(const std::string& name, const Bytes& bytes) const {
  for (const Kept& kept : kept_) {
    if (kept.name == name) return;
  }
  kept_.push_front({name, bytes});
  kept_bytes_ += static_cast<int64_t>(bytes->size());
  while (kept_bytes_ > most_kept_) {
    kept_bytes_ -= static_cast<int64_t>(kept_.back().bytes->size());
    kept_.pop_back();
  }
}

}  // namespace hetero::source
