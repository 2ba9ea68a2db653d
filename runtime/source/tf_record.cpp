#include "runtime/source/tf_record.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "runtime/job/field_set.h"
#include "runtime/source/file.h"
#include "runtime/source/gzip.h"
#include "runtime/source/little_endian.h"
#include "runtime/source/picture_encoding.h"
#include "runtime/source/sample_finder.h"
#include "runtime/source/sample_rule.h"
#include "runtime/source/shard_scan.h"
#include "runtime/source/sharded_dataset.h"
#include "runtime/source/tf_example.h"

namespace hetero::source {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr UsualNames kUsual = {"image/encoded;image", "image/class/label;label", "label"};
constexpr size_t kHeader = 12;  // length and checksum
constexpr size_t kTrailer = 4;  // checksum

uint32_t MaskedCrc(Bytes bytes) {
  const uint32_t crc = base::Crc32c(bytes.data(), bytes.size());
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// The bytes of a record's mask.
absl::StatusOr<Bytes> FindMask(Bytes example, const SampleRule& rule) {
  HETERO_ASSIGN_OR_RETURN(const std::vector<TfFeature> features, FindFeatures(example, rule.mask));
  for (size_t i = 0; i < features.size(); ++i) {
    if (features[i].kind == TfFeature::Kind::kMissing) continue;
    if (features[i].kind == TfFeature::Kind::kBytes) return BytesOf(features[i]);
    return absl::DataLossError(absl::StrCat(rule.mask[i], " is no mask: it has no bytes"));
  }
  return absl::DataLossError(absl::StrCat("has no feature ", absl::StrJoin(rule.mask, ", "),
                                          "; has ", FeaturesOf(example),
                                          "; name the mask's in dataset.fields.mask"));
}

// A record's picture and label.
struct Parts {
  Bytes picture;
  TfFeature label;
  std::string label_name;
};

absl::StatusOr<Parts> FindParts(Bytes example, const SampleRule& rule) {
  std::vector<std::string> names = rule.image;
  names.insert(names.end(), rule.label.begin(), rule.label.end());
  HETERO_ASSIGN_OR_RETURN(const std::vector<TfFeature> features, FindFeatures(example, names));
  const auto there = [](const TfFeature& feature) {
    return feature.kind != TfFeature::Kind::kMissing;
  };
  const auto labels = features.begin() + static_cast<std::ptrdiff_t>(rule.image.size());
  const auto picture = std::find_if(features.begin(), labels, there);
  if (picture == labels) {
    return absl::DataLossError(absl::StrCat("has no feature ", absl::StrJoin(rule.image, ", "),
                                            "; has ", FeaturesOf(example),
                                            "; name the picture's in dataset.fields.image"));
  }
  Parts parts;
  if (picture->kind != TfFeature::Kind::kBytes) {
    return absl::DataLossError(
        absl::StrCat(names[static_cast<size_t>(picture - features.begin())], " is no picture"));
  }
  HETERO_ASSIGN_OR_RETURN(parts.picture, BytesOf(*picture));
  if (rule.label.empty()) return parts;
  const auto label = std::find_if(labels, features.end(), there);
  if (label == features.end()) {
    return absl::DataLossError(absl::StrCat("has no feature ", absl::StrJoin(rule.label, ", "),
                                            "; has ", FeaturesOf(example),
                                            "; name the label's in dataset.fields.label.field"));
  }
  parts.label = *label;
  parts.label_name = names[static_cast<size_t>(label - features.begin())];
  return parts;
}

absl::StatusOr<int32_t> ReadClass(const Parts& parts, const SampleRule& rule) {
  if (parts.label.kind != TfFeature::Kind::kInts) {
    return absl::DataLossError(absl::StrCat(parts.label_name, " is no int64, and no class"));
  }
  HETERO_ASSIGN_OR_RETURN(const std::vector<int64_t> values, IntsOf(parts.label));
  if (values.size() == 1) return ClassOf(values[0], rule);
  return absl::DataLossError(
      absl::StrCat(parts.label_name, " has ", values.size(), " numbers; a class is one"));
}

absl::Status ReadNumbers(const Parts& parts, const SampleRule& rule, std::vector<uint8_t>* out) {
  const job::FieldSpec field = job::FieldsOf(rule.kind)->front();
  const auto put = [&](const auto& values) -> absl::Status {
    if (static_cast<int64_t>(values.size()) != field.numbers()) {
      return absl::DataLossError(absl::StrCat(parts.label_name, " has ", values.size(),
                                              " numbers, not ", field.numbers(),
                                              " as dataset.label says"));
    }
    out->resize(static_cast<size_t>(field.bytes()));
    if (!values.empty()) std::memcpy(out->data(), values.data(), out->size());
    return absl::OkStatus();
  };
  const bool ints = rule.kind.type == api::LabelType::kInt64;
  if (parts.label.kind != (ints ? TfFeature::Kind::kInts : TfFeature::Kind::kFloats)) {
    return absl::DataLossError(absl::StrCat(parts.label_name, " is no ", ints ? "int64" : "float",
                                            ", as dataset.label says"));
  }
  if (ints) {
    HETERO_ASSIGN_OR_RETURN(const std::vector<int64_t> values, IntsOf(parts.label));
    return put(values);
  }
  HETERO_ASSIGN_OR_RETURN(const std::vector<float> values, FloatsOf(parts.label));
  return put(values);
}

absl::Status ReadLabel(const Parts& parts, const SampleRule& rule, RawSample* sample) {
  if (rule.label.empty()) return absl::OkStatus();
  if (!rule.classes()) return ReadNumbers(parts, rule, &sample->fields);
  HETERO_ASSIGN_OR_RETURN(sample->label, ReadClass(parts, rule));
  return absl::OkStatus();
}

// Of bytes and the checksum behind them.
absl::StatusOr<Bytes> CheckRecord(Bytes record) {
  const Bytes data = record.first(record.size() - kTrailer);
  if (MaskedCrc(data) == WordAt(record, data.size())) return data;
  return absl::DataLossError("its checksum is wrong; copy the file again");
}

class TfRecord : public ShardedDataset {
 public:
  explicit TfRecord(SampleRule rule) : rule_(std::move(rule)) {}

 protected:
  bool labels_are_classes() const override { return rule_.classes(); }

  absl::Status Unpack(const SampleLocation&, RawSample* sample) const override {
    HETERO_ASSIGN_OR_RETURN(const Bytes example, CheckRecord(sample->bytes));
    HETERO_ASSIGN_OR_RETURN(const Parts parts, FindParts(example, rule_));
    HETERO_RETURN_IF_ERROR(ReadLabel(parts, rule_, sample));
    HETERO_RETURN_IF_ERROR(FindEncoding("the picture", parts.picture, &sample->encoding));
    if (rule_.masks()) {
      HETERO_ASSIGN_OR_RETURN(const Bytes mask, FindMask(example, rule_));
      sample->mask.assign(mask.begin(), mask.end());
    }
    KeepOnly(parts.picture, &sample->bytes);
    return absl::OkStatus();
  }

 private:
  const SampleRule rule_;
};

absl::Status NoRecord(const BlockReader& shard, int64_t offset, Bytes header) {
  if (offset == 0 && IsGzip(header)) {
    return absl::InvalidArgumentError(
        absl::StrCat(shard.where(),
                     ": a compressed file; records inside cannot be read one by one, unpack it "
                     "(gunzip), or write it without compression"));
  }
  const std::string message =
      absl::StrCat(shard.where(), ": byte ", offset, ": ", FirstBytes(header),
                   " begins no record (the checksum "
                   "of its length is wrong); ");
  if (offset == 0) return absl::InvalidArgumentError(message + "is this a TFRecord file?");
  return absl::DataLossError(message + "the file is damaged, copy it again");
}

class RecordScan {
 public:
  RecordScan(const SampleRule& rule, bool count_classes)
      : rule_(rule), count_classes_(count_classes) {}

  absl::Status operator()(BlockReader& shard, std::vector<SampleLocation>* samples) const {
    for (int64_t offset = 0; offset < shard.size();) {
      HETERO_ASSIGN_OR_RETURN(const Bytes header, shard.At(offset, kHeader, "a record's header"));
      if (!BeginsTfRecord(header)) return NoRecord(shard, offset, header);
      const uint64_t length = LongAt(header, 0);
      const int64_t left = shard.size() - offset - static_cast<int64_t>(kHeader + kTrailer);
      if (left < 0 || length > static_cast<uint64_t>(left)) {
        return absl::DataLossError(absl::StrCat(shard.where(), ": byte ", offset, ": a record of ",
                                                length,
                                                " bytes, but the file ends "
                                                "after ",
                                                shard.size(), "; it is cut short, copy it again"));
      }
      SampleLocation location;
      location.offset = offset + static_cast<int64_t>(kHeader);
      location.length = LengthOfLocation(static_cast<int64_t>(length + kTrailer));
      if (samples->empty() || count_classes_) {
        HETERO_RETURN_IF_ERROR(Look(shard, samples->empty(), &location));
      }
      samples->push_back(location);
      offset += static_cast<int64_t>(kHeader + length + kTrailer);
    }
    return absl::OkStatus();
  }

 private:
  // Finds the record's class. What is wrong with it is an error in a shard's first record: all are
  // wrong, most likely.
  absl::Status Look(BlockReader& shard, bool is_first, SampleLocation* location) const {
    location->label = -1;
    if (location->length > kMaxPictureBytes) return absl::OkStatus();
    HETERO_ASSIGN_OR_RETURN(const Bytes record,
                            shard.At(location->offset, location->length, "a record"));
    const absl::Status status = FindClass(record, location);
    if (status.ok() || !is_first) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(shard.where(), ": byte ", location->offset,
                                                   ": the first record ", status.message()));
  }

  absl::Status FindClass(Bytes record, SampleLocation* location) const {
    const absl::StatusOr<Bytes> example = CheckRecord(record);
    if (!example.ok()) return absl::OkStatus();  // an accident of this record
    HETERO_ASSIGN_OR_RETURN(const Parts parts, FindParts(*example, rule_));
    RawSample sample;
    HETERO_RETURN_IF_ERROR(ReadLabel(parts, rule_, &sample));
    location->label = sample.label;
    return absl::OkStatus();
  }

  const SampleRule& rule_;
  const bool count_classes_;
};

// "train-00017-of-01024", as TensorFlow's own tools name their files.
bool IsNumberedOf(std::string_view name) {
  const size_t of = name.rfind("-of-");
  if (of == std::string_view::npos || of == 0) return false;
  const auto digits = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const size_t dash = name.rfind('-', of - 1);
  return dash != std::string_view::npos && digits(name.substr(of + 4)) &&
         digits(name.substr(dash + 1, of - dash - 1));
}

// Where no name says what the files are, all must be.
absl::StatusOr<std::vector<storage::Object>> FindRecords(const ShardSource& shards) {
  absl::StatusOr<std::vector<storage::Object>> named =
      FindShards(shards, IsTfRecordName, "files of records");
  if (!absl::IsNotFound(named.status())) return named;
  return FindShards(
      shards, [](std::string_view) { return true; }, "files of records");
}

}  // namespace

bool IsTfRecordName(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('/') + 1);
  return absl::StrContains(absl::AsciiStrToLower(absl::string_view(last.data(), last.size())),
                           "tfrec") ||
         IsNumberedOf(last);
}

bool BeginsTfRecord(std::span<const uint8_t> bytes) {
  return bytes.size() >= kHeader && MaskedCrc(bytes.first(8)) == WordAt(bytes, 8);
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenTfRecord(const ShardSource& shards,
                                                      const api::DatasetSource& source, job::Split,
                                                      const api::Label& label) {
  const SampleRule rule = RuleOf(source, label, kUsual);
  IndexedShards records{.format = "TFRecord", .rule = rule.Text()};
  HETERO_ASSIGN_OR_RETURN(records.shards, FindRecords(shards));
  ShardedDataset::Contents contents;
  contents.store = shards.store;
  HETERO_ASSIGN_OR_RETURN(
      contents.samples,
      FindSamples(shards, {*shards.store, records, rule.classes() && !source.classes,
                           [&rule](bool count_classes) {
                             return RecordScan(rule, rule.classes() && count_classes);
                           }}));
  contents.shards = std::move(records.shards);
  contents.rule = std::move(records.rule);
  auto dataset = std::make_unique<TfRecord>(rule);
  HETERO_RETURN_IF_ERROR(dataset->Fill("TFRecord", std::move(contents), source,
                                       rule.classes() ? ShardedDataset::kCountClasses : 0));
  return dataset;
}

}  // namespace hetero::source
