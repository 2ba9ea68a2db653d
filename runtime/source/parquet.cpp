#include "runtime/source/parquet.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "runtime/job/field_set.h"
#include "runtime/source/parquet_choice.h"
#include "runtime/source/parquet_columns.h"
#include "runtime/source/parquet_footer.h"
#include "runtime/source/picture_encoding.h"
#include "runtime/source/sample_rule.h"
#include "runtime/source/shard_scan.h"
#include "runtime/source/sharded_dataset.h"

namespace hetero::source {
namespace {

constexpr UsualNames kUsualColumns = {"image.bytes;image", "label", "label"};

// What is wrong with a row is kept in the place of where its picture lies: as a picture of no bytes
// in the file's first bytes, where no picture is.
enum Flaw : int64_t { kNoPicture = kNullPicture, kNoLabel, kNoClass, kNotFinite, kFlaws };

const char* TextOf(Flaw flaw) {
  switch (flaw) {
    case kNoPicture:
      return "its picture is null";
    case kNoLabel:
      return "its label is null";
    case kNoClass:
      return "its label is no class";
    case kNotFinite:
      return "its label is no finite number";
    case kFlaws:
      break;
  }
  return "";
}

void Mark(Flaw flaw, SampleLocation* location) {
  location->label = -1;
  if (location->offset < kFlaws) return;  // a row without its picture needs no second flaw
  location->offset = flaw;
  location->length = 0;
}

// A number that is no class lies in the location itself: 8 bytes, or 4.
void KeepWhole(int64_t number, SampleLocation* location) {
  location->label = static_cast<int32_t>(static_cast<uint32_t>(number));
  location->label_length = static_cast<uint32_t>(static_cast<uint64_t>(number) >> 32);
}

int64_t WholeIn(const SampleLocation& location) {
  return static_cast<int64_t>(uint64_t{location.label_length} << 32 |
                              static_cast<uint32_t>(location.label));
}

void KeepLabel(const ParquetNumber& number, bool real, const SampleRule& rule,
               SampleLocation* location) {
  if (number.is_null) return Mark(kNoLabel, location);
  if (rule.classes()) {
    const absl::StatusOr<int32_t> label = ClassOf(number.whole, rule);
    if (!label.ok()) return Mark(kNoClass, location);
    location->label = *label;
  } else if (rule.kind.type == api::LabelType::kInt64) {
    KeepWhole(number.whole, location);
  } else {
    const double value = real ? number.real : static_cast<double>(number.whole);
    if (!(std::abs(value) <= double{std::numeric_limits<float>::max()})) {
      return Mark(kNotFinite, location);
    }
    location->label = std::bit_cast<int32_t>(static_cast<float>(value));
  }
}

// What the scan finds of a file beside its samples.
struct ParquetFile {
  std::vector<int64_t> rows;  // of each row group
  std::vector<std::string> class_names;
  PackedPieces pieces;  // of pictures that do not lie as they are
  std::vector<SampleLocation> masks;
};
using ParquetFiles = std::map<std::string, ParquetFile, std::less<>>;

// Places a status in its file, row group and column.
absl::Status At(const absl::Status& status, const BlockReader& file, std::string_view where) {
  // The store's own errors name the object themselves.
  if (status.ok() || absl::StartsWith(status.message(), file.where()) ||
      !(absl::IsDataLoss(status) || absl::IsInvalidArgument(status))) {
    return status;
  }
  return absl::Status(
      status.code(), absl::StrCat(file.where(), ": ", absl::string_view(where.data(), where.size()),
                                  status.message()));
}

class ParquetScan {
 public:
  // `files` has one for each name, which is filled in.
  ParquetScan(const SampleRule& rule, ParquetFiles* files) : rule_(rule), files_(*files) {}

  absl::Status operator()(BlockReader& reader, std::vector<SampleLocation>* samples) const {
    ParquetFile& file = files_.find(reader.name())->second;
    const absl::StatusOr<ParquetFooter> footer = ParquetFooter::Read(reader);
    if (!footer.ok()) return At(footer.status(), reader, "");
    absl::StatusOr<ParquetChoice> choice = ChooseParquetColumns(*footer, rule_);
    if (!choice.ok()) return At(choice.status(), reader, "");
    file.class_names = std::move(choice->class_names);
    std::vector<size_t> columns = {choice->picture};
    if (choice->label) columns.push_back(*choice->label);
    if (choice->mask) columns.push_back(*choice->mask);
    const absl::StatusOr<std::vector<ParquetRowGroup>> groups = footer->RowGroups(columns);
    if (!groups.ok()) return At(groups.status(), reader, "");
    for (const ParquetRowGroup& group : *groups) {
      const auto place = [&](size_t column) {
        return absl::StrCat("row group ", file.rows.size(), ": column ",
                            footer->columns()[column].path, " ");
      };
      const ParquetColumn& picture = footer->columns()[choice->picture];
      const size_t first = samples->size();
      HETERO_RETURN_IF_ERROR(At(
          FindParquetPictures(reader, picture, group.chunks[0], group.rows, &file.pieces, samples),
          reader, place(choice->picture)));
      if (choice->label) {
        const absl::Status status =
            ReadLabels(reader, footer->columns()[*choice->label], group, samples->data() + first);
        HETERO_RETURN_IF_ERROR(At(status, reader, place(*choice->label)));
      }
      if (choice->mask) {
        const absl::Status status =
            FindParquetPictures(reader, footer->columns()[*choice->mask], group.chunks.back(),
                                group.rows, &file.pieces, &file.masks);
        HETERO_RETURN_IF_ERROR(At(status, reader, place(*choice->mask)));
      }
      file.rows.push_back(group.rows);
    }
    return absl::OkStatus();
  }

 private:
  // Of the row group's samples, which begin at `sample`.
  absl::Status ReadLabels(BlockReader& reader, const ParquetColumn& column,
                          const ParquetRowGroup& group, SampleLocation* sample) const {
    const bool real = column.type == ParquetType::kFloat || column.type == ParquetType::kDouble;
    return ReadParquetNumbers(
        reader, column, group.chunks[1], group.rows,
        [&](const ParquetNumber& number) { KeepLabel(number, real, rule_, sample++); });
  }

  const SampleRule& rule_;
  ParquetFiles& files_;
};

class Parquet : public ShardedDataset {
 public:
  explicit Parquet(SampleRule rule) : rule_(std::move(rule)) {}

  // Before samples are read or described: the files in the order of their samples.
  void SetFiles(const std::vector<storage::Object>& shards, ParquetFiles* files) {
    int64_t first = 0;
    for (const storage::Object& shard : shards) {
      ParquetFile& file = files->find(shard.name)->second;
      const int64_t file_first = first;
      for (size_t i = 0; i < file.rows.size(); ++i) {
        groups_.push_back({first, file_first, static_cast<int64_t>(i)});
        first += file.rows[i];
      }
    }
    for (size_t shard = 0; rule_.masks() && shard < shards.size(); ++shard) {
      std::vector<SampleLocation>& masks = files->find(shards[shard].name)->second.masks;
      for (SampleLocation& mask : masks) mask.shard = static_cast<uint32_t>(shard);
      masks_.insert(masks_.end(), masks.begin(), masks.end());
      masks = {};
    }
    class_names_ = std::move(files->find(shards.front().name)->second.class_names);
  }

  // "file:///data/a.parquet: row 7 (row group 1)": rows are counted in the file.
  std::string Describe(int64_t id) const override {
    const auto after = std::upper_bound(
        groups_.begin(), groups_.end(), id,
        [](int64_t wanted, const RowGroup& group) { return wanted < group.first; });
    if (id < 0 || id >= size() || after == groups_.begin()) return ShardedDataset::Describe(id);
    const RowGroup& group = *std::prev(after);
    return absl::StrCat(ShardOf(id), ": row ", id - group.file_first, " (row group ", group.number,
                        ")");
  }
  absl::Status Read(int64_t id, RawSample* sample) const override {
    HETERO_RETURN_IF_ERROR(ShardedDataset::Read(id, sample));
    if (!rule_.masks()) return absl::OkStatus();
    const SampleLocation& mask = masks_[static_cast<size_t>(id)];
    if (mask.offset == kNullPicture || mask.length > kMaxPictureBytes) {
      return absl::DataLossError(absl::StrCat(
          Describe(id), mask.offset == kNullPicture ? ": its mask is null" : ": its mask is over ",
          mask.offset == kNullPicture ? "" : absl::StrCat(kMaxPictureBytes, " bytes")));
    }
    sample->mask.resize(mask.length);
    return ReadBytes(mask, mask.offset, absl::MakeSpan(sample->mask));
  }
  std::string ClassName(int32_t label) const override {
    const auto index = static_cast<size_t>(label);
    return rule_.offset == 0 && label >= 0 && index < class_names_.size()
               ? class_names_[index]
               : Dataset::ClassName(label);
  }

 protected:
  bool labels_are_classes() const override { return rule_.classes(); }
  // Labels are in the locations (KeepWhole()), and masks are read one by one.
  bool LiesApart(const SampleLocation&) const override { return rule_.masks(); }

  absl::Status Unpack(const SampleLocation& location, RawSample* sample) const override {
    if (location.offset < kFlaws) {
      return absl::DataLossError(TextOf(static_cast<Flaw>(location.offset)));
    }
    if (rule_.kind.type == api::LabelType::kInt64) {
      Put(WholeIn(location), sample);
    } else if (rule_.kind.type == api::LabelType::kFloat32) {
      Put(location.label, sample);
    }
    return FindEncoding("the picture", sample->bytes, &sample->encoding);
  }

 private:
  struct RowGroup {
    int64_t first;       // sample
    int64_t file_first;  // the first sample of its file
    int64_t number;      // in its file
  };

  template <typename T>
  static void Put(T bits, RawSample* sample) {
    sample->fields.resize(sizeof bits);
    std::memcpy(sample->fields.data(), &bits, sizeof bits);
  }

  const SampleRule rule_;
  std::vector<RowGroup> groups_;
  std::vector<SampleLocation> masks_;  // of each sample, where they are wanted
  std::vector<std::string> class_names_;
};

// Numbers of classes mean nothing where each file has other names for them.
absl::Status CheckClassNames(const ShardSource& shards, const std::vector<storage::Object>& found,
                             const ParquetFiles& files) {
  const std::vector<std::string>& first = files.find(found.front().name)->second.class_names;
  for (const storage::Object& shard : found) {
    if (files.find(shard.name)->second.class_names == first) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(shards.store->uri(), ": ", found.front().name, " and ", shard.name,
                     " name different classes for the labels' numbers; write them as one dataset"));
  }
  return absl::OkStatus();
}

// A store that reads pictures in compressed pages and dictionaries; `store` itself where there are
// none.
std::shared_ptr<const storage::Store> StoreOf(std::shared_ptr<const storage::Store> store,
                                              ParquetFiles* files) {
  UnpackedPieces::Objects objects;
  for (auto& [name, file] : *files) {
    if (!file.pieces.empty()) objects.emplace(name, std::move(file.pieces));
  }
  if (objects.empty()) return store;
  log::Warning(
      "pictures in compressed pages or dictionaries of Parquet are read a page for each: in "
      "another "
      "order than the files' that takes many times the bytes. `hetero-runtime pack` makes shards "
      "of them whose pictures are read by themselves",
      {{"uri", store->uri()}, {"files", static_cast<int64_t>(objects.size())}});
  return std::make_shared<const UnpackedPieces>(std::move(store), std::move(objects));
}

absl::Status CheckOneNumber(const std::string& uri, const SampleRule& rule) {
  if (!rule.kind.numbers()) return absl::OkStatus();
  const int64_t wanted = job::FieldsOf(rule.kind)->front().numbers();
  if (wanted == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(uri, ": dataset.label.shape wants ", wanted,
                   " numbers, and a column of Parquet gives one; lists are not read"));
}

}  // namespace

bool IsParquetName(std::string_view name) {
  return absl::EndsWithIgnoreCase(absl::string_view(name.data(), name.size()), ".parquet");
}

bool BeginsParquet(std::span<const uint8_t> bytes) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), kParquetMagic, 4) == 0;
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenParquet(const ShardSource& shards,
                                                     const api::DatasetSource& source, job::Split,
                                                     const api::Label& label) {
  const SampleRule rule = RuleOf(source, label, kUsualColumns);
  HETERO_RETURN_IF_ERROR(CheckOneNumber(shards.store->uri(), rule));
  ShardedDataset::Contents contents;
  contents.store = shards.store;
  HETERO_ASSIGN_OR_RETURN(contents.shards, FindShards(shards, IsParquetName, "*.parquet"));
  ParquetFiles files;
  for (const storage::Object& shard : contents.shards) {
    if (files.try_emplace(shard.name).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(shards.store->uri(), "/", shard.name, ": is named twice"));
  }
  HETERO_ASSIGN_OR_RETURN(std::vector<SampleLocation> samples,
                          ScanShards(*shards.store, contents.shards, ParquetScan(rule, &files)));
  contents.samples = SampleTable(std::move(samples));
  contents.store = StoreOf(shards.store, &files);
  HETERO_RETURN_IF_ERROR(CheckClassNames(shards, contents.shards, files));
  contents.rule = rule.Text();
  auto dataset = std::make_unique<Parquet>(rule);
  const auto names = static_cast<int32_t>(files.begin()->second.class_names.size());
  dataset->SetFiles(contents.shards, &files);
  int32_t classes = 0;
  if (rule.classes()) {
    classes = names > 0 && rule.offset == 0 ? names : ShardedDataset::kCountClasses;
  }
  HETERO_RETURN_IF_ERROR(dataset->Fill("Parquet", std::move(contents), source, classes));
  return dataset;
}

}  // namespace hetero::source
