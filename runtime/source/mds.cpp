#include "runtime/source/mds.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "runtime/source/little_endian.h"
#include "runtime/source/mds_index.h"
#include "runtime/source/mds_sample.h"
#include "runtime/source/picture_encoding.h"
#include "runtime/source/sample_rule.h"
#include "runtime/source/shard_scan.h"
#include "runtime/source/sharded_dataset.h"
#include "runtime/source/unpacked_shards.h"

namespace hetero::source {
namespace {

constexpr UsualNames kUsualColumns = {"image;jpg;jpeg;png", "class;label;cls", "label"};
constexpr int64_t kMaxIndexBytes = int64_t{256} << 20;

class Mds : public ShardedDataset {
 public:
  Mds(SampleRule rule, MdsColumns columns) : rule_(std::move(rule)), columns_(std::move(columns)) {}

 protected:
  bool labels_are_classes() const override { return rule_.classes(); }

  absl::Status Unpack(const SampleLocation&, RawSample* sample) const override {
    HETERO_ASSIGN_OR_RETURN(const MdsColumns::Parts parts, columns_.Split(sample->bytes));
    if (rule_.classes()) {
      HETERO_ASSIGN_OR_RETURN(sample->label, columns_.ClassIn(parts.label));
    } else if (rule_.kind.numbers()) {
      HETERO_RETURN_IF_ERROR(columns_.NumbersIn(parts.label, &sample->fields));
    }
    HETERO_RETURN_IF_ERROR(FindEncoding("the picture", parts.picture, &sample->encoding));
    sample->mask.assign(parts.mask.begin(), parts.mask.end());
    KeepOnly(parts.picture, &sample->bytes);
    return absl::OkStatus();
  }

 private:
  const SampleRule rule_;
  const MdsColumns columns_;
};

// Reads a shard's table: how many samples, where each begins, where the last ends.
class TableScan {
 public:
  // With `columns` the highest class is looked for.
  TableScan(const MdsColumns* columns, bool packed) : columns_(columns), packed_(packed) {}

  absl::Status operator()(BlockReader& shard, std::vector<SampleLocation>* samples) const {
    // Each block of a packed shard may unpack all of it, so it is taken as one.
    if (packed_ && columns_ != nullptr) {
      HETERO_RETURN_IF_ERROR(shard.At(0, static_cast<size_t>(shard.size()), "the shard").status());
    }
    HETERO_ASSIGN_OR_RETURN(std::span<const uint8_t> bytes, shard.At(0, 4, "the table's length"));
    const uint32_t count = WordAt(bytes, 0);
    const size_t table = 4 * (size_t{count} + 2);
    HETERO_ASSIGN_OR_RETURN(bytes, shard.At(0, table, "the table of samples"));
    uint32_t begin = WordAt(bytes, 4);
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t end = WordAt(bytes, 4 * (size_t{i} + 2));
      if (begin < table || end < begin || end > shard.size()) {
        return absl::DataLossError(absl::StrCat(
            shard.where(), ": byte ", 4 * (size_t{i} + 1), ": sample ", i, " lies from ", begin,
            " to ", end, ", but samples begin after the table at ", table, " and the file ends at ",
            shard.size(), "; it is damaged, copy it again"));
      }
      samples->push_back({.offset = begin, .length = end - begin});
      begin = end;
    }
    return columns_ == nullptr ? absl::OkStatus() : CountClasses(shard, samples);
  }

 private:
  absl::Status CountClasses(BlockReader& shard, std::vector<SampleLocation>* samples) const {
    for (SampleLocation& sample : *samples) {
      sample.label = -1;
      if (sample.length > kMaxPictureBytes) continue;
      HETERO_ASSIGN_OR_RETURN(const std::span<const uint8_t> bytes,
                              shard.At(sample.offset, sample.length, "a sample"));
      // What is no class is a bad sample when it is read.
      const absl::StatusOr<MdsColumns::Parts> parts = columns_->Split(bytes);
      if (!parts.ok()) continue;
      const absl::StatusOr<int32_t> label = columns_->ClassIn(parts->label);
      if (label.ok()) sample.label = *label;
    }
    return absl::OkStatus();
  }

  const MdsColumns* columns_;
  const bool packed_;
};

absl::StatusOr<MdsIndex> ReadIndex(const storage::Store& store, const std::string& where) {
  HETERO_ASSIGN_OR_RETURN(const storage::Object file, store.Head(kMdsIndex));
  if (file.size > kMaxIndexBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": ", file.size, " bytes; ", kMaxIndexBytes, " at most are read"));
  }
  std::string text(static_cast<size_t>(file.size), '\0');
  HETERO_RETURN_IF_ERROR(
      store.Read(file, 0, absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), text.size())));
  return ParseMdsIndex(where, text);
}

// The index says how large its shards are: one of another dataset, or half of one, is told.
absl::StatusOr<std::vector<storage::Object>> FindMdsShards(const storage::Store& store,
                                                           const MdsIndex& index) {
  std::vector<std::string> names;
  for (const MdsShard& shard : index.shards) names.push_back(shard.name);
  HETERO_ASSIGN_OR_RETURN(std::vector<storage::Object> shards, HeadAll(store, names));
  for (size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].size == index.shards[i].bytes) continue;
    return absl::DataLossError(absl::StrCat(store.uri(), "/", names[i], ": ", shards[i].size,
                                            " bytes, but ", kMdsIndex, " says ",
                                            index.shards[i].bytes, "; copy the dataset again"));
  }
  return shards;
}

// Shards that are compressed, as if they were not.
absl::StatusOr<std::shared_ptr<const storage::Store>> UnpackStore(
    std::shared_ptr<const storage::Store> store, const MdsIndex& index,
    std::vector<storage::Object>* shards) {
  std::vector<UnpackedShards::Shard> packed;
  for (size_t i = 0; i < shards->size(); ++i) {
    const int64_t bytes = std::max(index.shards[i].unpacked, index.shards[i].bytes);
    if (bytes > UnpackedShards::kMostBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(store->uri(), "/", index.shards[i].name, ": a compressed shard of ", bytes,
                       " bytes; ", UnpackedShards::kMostBytes,
                       " at most are read, for it has to be held whole. Write the dataset with "
                       "compression=None: pictures are compressed already"));
    }
    packed.push_back({(*shards)[i], index.shards[i].unpacked});
  }
  auto unpacked = std::make_shared<const UnpackedShards>(std::move(store), std::move(packed));
  for (storage::Object& shard : *shards) {
    HETERO_ASSIGN_OR_RETURN(shard, unpacked->Head(shard.name));
  }
  return unpacked;
}

absl::Status CheckCounts(const MdsIndex& index, const ShardedDataset::Contents& contents) {
  std::vector<int64_t> counts(index.shards.size());
  for (const SampleLocation& sample : contents.samples.in_memory()) ++counts[sample.shard];
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == index.shards[i].samples) continue;
    return absl::DataLossError(absl::StrCat(contents.store->uri(), "/", index.shards[i].name, ": ",
                                            counts[i], " samples, but ", kMdsIndex, " says ",
                                            index.shards[i].samples, "; copy the dataset again"));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsMdsIndex(std::string_view text) {
  return absl::StrContains(absl::string_view(text.data(), text.size()), "\"shards\"");
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenMds(const ShardSource& shards,
                                                 const api::DatasetSource& source, job::Split,
                                                 const api::Label& label) {
  const SampleRule rule = RuleOf(source, label, kUsualColumns);
  const std::string where = absl::StrCat(shards.store->uri(), "/", kMdsIndex);
  if (!shards.names.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dataset.uri \"", source.uri, "\": MDS has its files in index.json; name its folder"));
  }
  HETERO_ASSIGN_OR_RETURN(const MdsIndex index, ReadIndex(*shards.store, where));
  absl::StatusOr<MdsColumns> columns = MdsColumns::Find(index, rule);
  if (!columns.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", columns.status().message()));
  }
  const bool count_classes = rule.classes() && !source.classes;
  ShardedDataset::Contents contents;
  contents.store = shards.store;
  HETERO_ASSIGN_OR_RETURN(contents.shards, FindMdsShards(*shards.store, index));
  if (index.shards.front().unpacked > 0) {
    HETERO_ASSIGN_OR_RETURN(contents.store, UnpackStore(shards.store, index, &contents.shards));
  }
  HETERO_ASSIGN_OR_RETURN(std::vector<SampleLocation> samples,
                          ScanShards(*contents.store, contents.shards,
                                     TableScan(count_classes ? &*columns : nullptr,
                                               index.shards.front().unpacked > 0)));
  contents.samples = SampleTable(std::move(samples));
  HETERO_RETURN_IF_ERROR(CheckCounts(index, contents));
  contents.rule = rule.Text();
  auto dataset = std::make_unique<Mds>(rule, *std::move(columns));
  HETERO_RETURN_IF_ERROR(dataset->Fill("MDS", std::move(contents), source,
                                       rule.classes() ? ShardedDataset::kCountClasses : 0));
  return dataset;
}

}  // namespace hetero::source
