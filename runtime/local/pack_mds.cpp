#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "runtime/local/pack_shard.h"
#include "runtime/source/little_endian.h"
#include "runtime/source/mds.h"
#include "runtime/source/mds_writer.h"

namespace hetero::local {
namespace {

using source::MdsColumn;

// What a label's column is of: one number, or an array.
MdsColumn LabelColumn(const api::Label& label, const char* type, int64_t size) {
  if (label.shape.empty()) return {"label", type, size};
  for (const int32_t dimension : label.shape) size *= dimension;
  return {"label", absl::StrCat("ndarray:", type, ":", absl::StrJoin(label.shape, ",")), size};
}

// In the order of their names. The picture is of bytes, for no other encoding is that of both kinds
// of files, and which ones there are is known when all are read.
std::vector<MdsColumn> ColumnsOf(const api::Label& label) {
  const MdsColumn picture = {"image", "bytes", -1};
  switch (label.type) {
    case api::LabelType::kClass:
      return {picture, {"label", "int", sizeof(int64_t)}};
    case api::LabelType::kInt64:
      return {picture, LabelColumn(label, "int64", sizeof(int64_t))};
    case api::LabelType::kFloat32:
      return {picture, LabelColumn(label, "float32", sizeof(float))};
    case api::LabelType::kNone:
      return {picture};
  }
  __builtin_unreachable();
}

// The size of the picture, the picture, the label.
std::vector<uint8_t> MdsSample(const source::RawSample& sample, api::LabelType label) {
  std::vector<uint8_t> bytes;
  bytes.reserve(sizeof(uint32_t) + sample.bytes.size() +
                std::max(sizeof(int64_t), sample.fields.size()));
  source::AppendWord(static_cast<uint32_t>(sample.bytes.size()), &bytes);
  bytes.insert(bytes.end(), sample.bytes.begin(), sample.bytes.end());
  if (label == api::LabelType::kClass) {
    source::AppendWord(static_cast<uint32_t>(sample.label), &bytes);
    source::AppendWord(sample.label < 0 ? 0xffffffff : 0, &bytes);
  } else if (label != api::LabelType::kNone) {
    bytes.insert(bytes.end(), sample.fields.begin(), sample.fields.end());
  }
  return bytes;
}

class MdsPackShard : public PackShard {
 public:
  MdsPackShard(std::string name, std::unique_ptr<storage::ObjectWriter> writer,
               api::LabelType label, std::string config)
      : PackShard(std::move(name), std::move(writer)),
        label_(label),
        config_(std::move(config)),
        bytes_(source::kMdsTable + static_cast<int64_t>(config_.size())) {}

  int64_t bytes() const override { return bytes_; }

 private:
  absl::Status Put(int64_t, const source::RawSample& sample) override {
    samples_.push_back(MdsSample(sample, label_));
    bytes_ += source::kMdsTableSample + static_cast<int64_t>(samples_.back().size());
    return absl::OkStatus();
  }
  absl::Status Finish(const std::stop_token& stop) override {
    std::vector<uint32_t> lengths;
    for (const auto& sample : samples_) lengths.push_back(static_cast<uint32_t>(sample.size()));
    HETERO_RETURN_IF_ERROR(Append(source::MdsTable(lengths, config_.size())));
    HETERO_RETURN_IF_ERROR(
        Append({reinterpret_cast<const uint8_t*>(config_.data()), config_.size()}));
    for (const auto& sample : samples_) {
      if (stop.stop_requested()) return absl::CancelledError("stopped");
      HETERO_RETURN_IF_ERROR(Append(sample));
    }
    return absl::OkStatus();
  }

  const api::LabelType label_;
  const std::string config_;
  // Each by itself: one long buffer would be copied while it grows.
  std::vector<std::vector<uint8_t>> samples_;
  int64_t bytes_;
};

class MdsFormat : public PackFormat {
 public:
  MdsFormat(const api::Label& label, int64_t shard_bytes)
      : label_(label.type), columns_(ColumnsOf(label)), shard_bytes_(shard_bytes) {}

  std::string ShardName(size_t number) const override {
    return absl::StrFormat("shard.%05d.mds", number);
  }
  bool IsShard(const std::string& name) const override {
    return absl::StartsWith(name, "shard.") && absl::EndsWith(name, ".mds");
  }
  size_t most_shards() const override { return 100'000; }
  int64_t most_shard_bytes() const override { return source::kMostMdsBytes; }
  std::unique_ptr<PackShard> Begin(std::string name,
                                   std::unique_ptr<storage::ObjectWriter> writer) const override {
    return std::make_unique<MdsPackShard>(std::move(name), std::move(writer), label_,
                                          source::MdsConfig(columns_, shard_bytes_));
  }
  int64_t BytesOf(const source::RawSample& sample) const override {
    int64_t bytes = source::kMdsTableSample;
    for (const MdsColumn& column : columns_) {
      bytes += column.size >= 0 ? column.size
                                : static_cast<int64_t>(sizeof(uint32_t) + sample.bytes.size());
    }
    return bytes;
  }
  std::string index_name() const override { return source::kMdsIndex; }
  std::string Index(const std::vector<PackedShard>& shards) const override {
    std::vector<source::MdsShard> listed;
    for (const PackedShard& shard : shards) {
      listed.push_back({.name = shard.name, .bytes = shard.bytes, .samples = shard.samples});
    }
    return source::MdsIndexText(columns_, shard_bytes_, listed);
  }

 private:
  const api::LabelType label_;
  const std::vector<MdsColumn> columns_;
  const int64_t shard_bytes_;
};

}  // namespace

std::unique_ptr<PackFormat> PackMds(const api::Label& label, int64_t shard_bytes) {
  return std::make_unique<MdsFormat>(label, shard_bytes);
}

}  // namespace hetero::local
