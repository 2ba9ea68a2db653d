#include "runtime/source/record_io.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/job/field_set.h"
#include "runtime/source/file.h"
#include "runtime/source/little_endian.h"
#include "runtime/source/picture_encoding.h"
#include "runtime/source/sample_finder.h"
#include "runtime/source/sample_rule.h"
#include "runtime/source/shard_scan.h"
#include "runtime/source/sharded_dataset.h"

namespace hetero::source {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr uint32_t kMagic = 0xced7230a;
constexpr size_t kPartHeader = 8;
// Of IRHeader: how many labels follow it, the one label otherwise, two numbers of the picture.
constexpr size_t kIrHeader = 24;

// Where in its record a part lies.
enum PartFlag : uint32_t { kWhole = 0, kFirst = 1, kMiddle = 2, kLast = 3 };

struct PartHeader {
  uint32_t flag = 0;
  uint32_t length = 0;
};

PartHeader HeaderAt(Bytes bytes, size_t at) {
  const uint32_t word = WordAt(bytes, at + 4);
  return {word >> 29, word & 0x1fffffff};
}

size_t PaddedToWord(size_t size) { return (size + 3) / 4 * 4; }

// Puts the parts of a record together, in place: each is moved to where it belongs, and the magic
// word between them, which is no longer than what it takes the place of.
absl::Status JoinParts(std::vector<uint8_t>* record) {
  size_t out = 0;
  for (size_t at = 0; at < record->size();) {
    if (record->size() - at < kPartHeader) return absl::DataLossError("a part without a header");
    const PartHeader part = HeaderAt(*record, at);
    if (WordAt(*record, at) != kMagic || part.length > record->size() - at - kPartHeader) {
      return absl::DataLossError("a damaged part of a record");
    }
    if (at > 0) {
      std::memcpy(record->data() + out, &kMagic, sizeof kMagic);
      out += sizeof kMagic;
    }
    std::memmove(record->data() + out, record->data() + at + kPartHeader, part.length);
    out += part.length;
    at += kPartHeader + PaddedToWord(part.length);
  }
  record->resize(out);
  return absl::OkStatus();
}

struct Labelled {
  Bytes labels;  // floats
  Bytes picture;
};

absl::StatusOr<Labelled> SplitRecord(Bytes record) {
  if (record.size() < kIrHeader) {
    return absl::DataLossError(
        absl::StrCat("a record of ", record.size(), " bytes, and its IRHeader alone has 24"));
  }
  const uint64_t labels = WordAt(record, 0);
  if (labels == 0) return Labelled{record.subspan(4, 4), record.subspan(kIrHeader)};
  if (4 * labels > record.size() - kIrHeader) {
    return absl::DataLossError(absl::StrCat("a record of ", record.size(), " bytes that says it ",
                                            "has ", labels, " labels"));
  }
  return Labelled{record.subspan(kIrHeader, 4 * labels), record.subspan(kIrHeader + 4 * labels)};
}

absl::StatusOr<int32_t> ClassOfRecord(Bytes labels, const SampleRule& rule) {
  if (labels.size() != sizeof(float)) {
    return absl::DataLossError(
        absl::StrCat("has ", labels.size() / sizeof(float), " labels; a class is one"));
  }
  float number = 0;
  std::memcpy(&number, labels.data(), sizeof number);
  // Floats are whole numbers beyond that, whatever was meant.
  if (std::abs(number) < float{1 << 24} && number == std::floor(number)) {
    return ClassOf(static_cast<int64_t>(number), rule);
  }
  return absl::DataLossError(absl::StrCat("label ", number, " is no class"));
}

class RecordIo : public ShardedDataset {
 public:
  explicit RecordIo(SampleRule rule) : rule_(std::move(rule)) {}

 protected:
  bool labels_are_classes() const override { return rule_.classes(); }

  absl::Status Unpack(const SampleLocation&, RawSample* sample) const override {
    HETERO_RETURN_IF_ERROR(JoinParts(&sample->bytes));
    HETERO_ASSIGN_OR_RETURN(const Labelled parts, SplitRecord(sample->bytes));
    if (rule_.classes()) {
      HETERO_ASSIGN_OR_RETURN(sample->label, ClassOfRecord(parts.labels, rule_));
    } else if (rule_.kind.numbers()) {
      const int64_t wanted = job::FieldsOf(rule_.kind)->front().bytes();
      if (static_cast<int64_t>(parts.labels.size()) != wanted) {
        return absl::DataLossError(absl::StrCat("has ", parts.labels.size() / sizeof(float),
                                                " labels, not ", wanted / 4,
                                                " as dataset.label says"));
      }
      sample->fields.assign(parts.labels.begin(), parts.labels.end());
    }
    HETERO_RETURN_IF_ERROR(FindEncoding("the picture", parts.picture, &sample->encoding));
    KeepOnly(parts.picture, &sample->bytes);
    return absl::OkStatus();
  }

 private:
  const SampleRule rule_;
};

absl::Status NoPart(const BlockReader& shard, int64_t offset, Bytes header) {
  const std::string message = absl::StrCat(shard.where(), ": byte ", offset, ": ",
                                           FirstBytes(header), " begins no record; ");
  if (offset == 0) return absl::InvalidArgumentError(message + "is this a RecordIO file?");
  return absl::DataLossError(message + "the file is damaged, copy it again");
}

// Finds where the record that begins at `*offset` ends, and moves `*offset` behind it.
absl::StatusOr<SampleLocation> NextRecord(BlockReader& shard, int64_t* offset) {
  SampleLocation location{.offset = *offset};
  bool more = true;
  for (bool first = true; more; first = false) {
    HETERO_ASSIGN_OR_RETURN(const Bytes bytes, shard.At(*offset, kPartHeader, "a record's header"));
    const PartHeader part = HeaderAt(bytes, 0);
    const bool fits = first ? part.flag == kWhole || part.flag == kFirst
                            : part.flag == kMiddle || part.flag == kLast;
    if (WordAt(bytes, 0) != kMagic || !fits) return NoPart(shard, *offset, bytes);
    const int64_t end = *offset + static_cast<int64_t>(kPartHeader + part.length);
    if (end > shard.size()) {
      return absl::DataLossError(absl::StrCat(shard.where(), ": byte ", *offset, ": a record of ",
                                              part.length, " bytes, but the file ends after ",
                                              shard.size(), "; it is cut short, copy it again"));
    }
    location.length = LengthOfLocation(end - location.offset);
    *offset = location.offset +
              static_cast<int64_t>(PaddedToWord(static_cast<size_t>(end - location.offset)));
    more = part.flag == kFirst || part.flag == kMiddle;
  }
  return location;
}

absl::Status ScanRecords(const SampleRule& rule, bool count_classes, BlockReader& shard,
                         std::vector<SampleLocation>* samples) {
  for (int64_t offset = 0; offset < shard.size();) {
    HETERO_ASSIGN_OR_RETURN(SampleLocation location, NextRecord(shard, &offset));
    location.label = -1;
    if (count_classes && location.length <= kMaxPictureBytes) {
      HETERO_ASSIGN_OR_RETURN(const Bytes bytes,
                              shard.At(location.offset, location.length, "a record"));
      std::vector<uint8_t> record(bytes.begin(), bytes.end());
      const absl::Status joined = JoinParts(&record);
      const absl::StatusOr<Labelled> parts = joined.ok() ? SplitRecord(record) : joined;
      // What is no class is a bad sample when it is read.
      if (parts.ok()) location.label = ClassOfRecord(parts->labels, rule).value_or(-1);
    }
    samples->push_back(location);
  }
  return absl::OkStatus();
}

absl::Status CheckRule(const api::DatasetSource& source, const api::Label& label) {
  if (!source.fields.image.empty() || !source.fields.mask.empty() ||
      !source.fields.label.field.empty() || !label.field.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dataset ", source.uri, ": RecordIO has no names of fields; of dataset.fields it takes ",
        "label.offset alone"));
  }
  if (label.type != api::LabelType::kInt64) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "dataset ", source.uri, ": RecordIO has labels of float; set dataset.label.type to Float32"));
}

}  // namespace

bool IsRecordIoName(std::string_view name) { return name.ends_with(".rec"); }

bool BeginsRecordIo(std::span<const uint8_t> bytes) {
  return bytes.size() >= kPartHeader && WordAt(bytes, 0) == kMagic;
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenRecordIo(const ShardSource& shards,
                                                      const api::DatasetSource& source, job::Split,
                                                      const api::Label& label) {
  HETERO_RETURN_IF_ERROR(CheckRule(source, label));
  const SampleRule rule = RuleOf(source, label, {"picture", "labels", "labels"});
  IndexedShards records{.format = "RecordIO", .rule = rule.Text()};
  HETERO_ASSIGN_OR_RETURN(records.shards,
                          FindShards(shards, IsRecordIoName, "files of records, *.rec"));
  ShardedDataset::Contents contents;
  contents.store = shards.store;
  HETERO_ASSIGN_OR_RETURN(
      contents.samples,
      FindSamples(shards, {*shards.store, records, rule.classes() && !source.classes,
                           [&rule](bool count_classes) -> ShardScan {
                             return [&rule, count = rule.classes() && count_classes](
                                        BlockReader& shard, std::vector<SampleLocation>* samples) {
                               return ScanRecords(rule, count, shard, samples);
                             };
                           }}));
  contents.shards = std::move(records.shards);
  contents.rule = std::move(records.rule);
  auto dataset = std::make_unique<RecordIo>(rule);
  HETERO_RETURN_IF_ERROR(dataset->Fill("RecordIO", std::move(contents), source,
                                       rule.classes() ? ShardedDataset::kCountClasses : 0));
  return dataset;
}

}  // namespace hetero::source
