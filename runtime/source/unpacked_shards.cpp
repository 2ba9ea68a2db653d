#include "runtime/source/unpacked_shards.h"

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
    : packed_(std::move(packed)), kept_(kept_bytes) {
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
  HETERO_ASSIGN_OR_RETURN(
      const KeptBytes::Bytes bytes,
      kept_.Find(found->first, [&, shard = &found->second] { return Unpack(*shard); }));
  std::memcpy(out.data(), bytes->data() + offset, out.size());
  return absl::OkStatus();
}

absl::StatusOr<KeptBytes::Bytes> UnpackedShards::Unpack(const Shard& shard) const {
  std::vector<uint8_t> packed(static_cast<size_t>(shard.packed.size));
  HETERO_RETURN_IF_ERROR(packed_->Read(shard.packed, 0, absl::MakeSpan(packed)));
  auto bytes = std::make_shared<std::vector<uint8_t>>();
  const absl::Status status = DecompressZstd(packed, static_cast<size_t>(shard.bytes), bytes.get());
  if (status.ok()) return bytes;
  return absl::DataLossError(absl::StrCat(uri(), "/", shard.packed.name, ": ", status.message(),
                                          "; copy the dataset again"));
}

}  // namespace hetero::source
