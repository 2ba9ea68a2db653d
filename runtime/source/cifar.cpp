#include "runtime/source/cifar.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "runtime/source/declared.h"
#include "runtime/source/sample_rule.h"
#include "runtime/source/sharded_dataset.h"
#include "runtime/source/unpacked_archive.h"

namespace hetero::source {
namespace {

constexpr api::ImageShape kShape = {32, 32, 3};
constexpr size_t kPlane = size_t{32} * 32;
constexpr size_t kPixels = 3 * kPlane;
constexpr int64_t kMaxNamesBytes = 1 << 16;

constexpr char kArchive10[] = "cifar-10-binary.tar.gz";
constexpr char kArchive100[] = "cifar-100-binary.tar.gz";

struct Kind {
  const char* name;
  int32_t classes;
  size_t labels;  // bytes before the pixels
  size_t label;   // which of them
  const char* names_file;
  IsShardName train;
  IsShardName validation;
  const char* train_files;
  const char* validation_file;
  const char* archive;  // that it is published as

  int64_t record() const { return static_cast<int64_t>(labels + kPixels); }
};

std::string_view LastPart(std::string_view name) { return name.substr(name.rfind('/') + 1); }

bool IsBatch(std::string_view name) {
  const std::string_view last = LastPart(name);
  return last.starts_with("data_batch_") && last.ends_with(".bin");
}
bool IsTestBatch(std::string_view name) { return LastPart(name) == "test_batch.bin"; }
bool IsTrain(std::string_view name) { return LastPart(name) == "train.bin"; }
bool IsTest(std::string_view name) { return LastPart(name) == "test.bin"; }

bool IsPacked(std::string_view name) { return name.ends_with(".tar.gz") || name.ends_with(".tgz"); }

constexpr Kind kCifar10 = {
    "CIFAR10",          10,         1,           0,
    "batches.meta.txt", IsBatch,    IsTestBatch, "data_batch_*.bin",
    "test_batch.bin",   kArchive10,
};
constexpr Kind kFine = {
    "CIFAR100", 100,    2,           1,          "fine_label_names.txt",
    IsTrain,    IsTest, "train.bin", "test.bin", kArchive100,
};
constexpr Kind kCoarse = {
    "CIFAR100", 20,     2,           0,          "coarse_label_names.txt",
    IsTrain,    IsTest, "train.bin", "test.bin", kArchive100,
};

class Cifar : public ShardedDataset {
 public:
  Cifar(const Kind& kind, bool labels, std::vector<std::string> names)
      : kind_(kind), labels_(labels), names_(std::move(names)) {
    SetImage(kShape);
  }

  std::string ClassName(int32_t label) const override {
    return static_cast<size_t>(label) < names_.size() ? names_[static_cast<size_t>(label)]
                                                      : Dataset::ClassName(label);
  }
  api::ImageShape image() const override { return kShape; }

 protected:
  bool labels_are_classes() const override { return labels_; }

  absl::Status Unpack(const SampleLocation&, RawSample* sample) const override {
    sample->label = labels_ ? sample->bytes[kind_.label] : 0;
    std::array<uint8_t, kPixels> planes;
    std::copy(sample->bytes.begin() + static_cast<std::ptrdiff_t>(kind_.labels),
              sample->bytes.end(), planes.begin());
    sample->bytes.resize(kPixels);
    for (size_t i = 0; i < kPlane; ++i) {
      for (size_t plane = 0; plane < 3; ++plane) {
        sample->bytes[3 * i + plane] = planes[plane * kPlane + i];
      }
    }
    sample->encoding = Encoding::kRaw;
    sample->shape = kShape;
    return absl::OkStatus();
  }

 private:
  const Kind& kind_;
  const bool labels_;
  const std::vector<std::string> names_;
};

// A line for each class. The file is often not kept with the data: then there are no names.
std::vector<std::string> ReadNames(const storage::Store& store, const std::string& data_file,
                                   const Kind& kind) {
  const std::string folder = data_file.substr(0, data_file.size() - LastPart(data_file).size());
  const absl::StatusOr<storage::Object> file = store.Head(folder + kind.names_file);
  if (!file.ok() || file->size > kMaxNamesBytes) return {};
  std::string text(static_cast<size_t>(file->size), '\0');
  const auto bytes = absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), text.size());
  if (!store.Read(*file, 0, bytes).ok()) return {};
  std::vector<std::string> names = absl::StrSplit(text, absl::ByAnyChar("\r\n"), absl::SkipEmpty());
  return names;
}

// The files of a split: unpacked ones, else those in the archive that is published, else those in
// the only one that is there.
absl::Status FindFiles(const ShardSource& given, const Kind& kind, bool train,
                       ShardedDataset::Contents* contents) {
  const IsShardName is_file = train ? kind.train : kind.validation;
  const char* const looked_for = train ? kind.train_files : kind.validation_file;
  const auto find = [&](const ShardSource& shards) -> absl::Status {
    HETERO_ASSIGN_OR_RETURN(contents->shards, FindShards(shards, is_file, looked_for));
    contents->store = shards.store;
    return absl::OkStatus();
  };
  const bool names_archive = given.names.size() == 1 && IsPacked(given.names[0]);
  const absl::Status unpacked = names_archive ? absl::NotFoundError("") : find(given);
  if (!absl::IsNotFound(unpacked)) return unpacked;
  const absl::StatusOr<std::vector<storage::Object>> archives =
      FindShards(given, IsPacked, "an archive");
  if (absl::IsNotFound(archives.status()) && !names_archive) return unpacked;
  HETERO_RETURN_IF_ERROR(archives.status());
  const auto published = std::find_if(
      archives->begin(), archives->end(),
      [&](const storage::Object& object) { return LastPart(object.name) == kind.archive; });
  if (published == archives->end() && archives->size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        given.store->uri(), ": has ", archives->size(), " archives, ", (*archives)[0].name, " and ",
        (*archives)[1].name, " among them; leave one of them there, or unpack it"));
  }
  HETERO_ASSIGN_OR_RETURN(
      std::shared_ptr<const storage::Store> archive,
      UnpackedArchive::OpenShared(*given.store,
                                  published == archives->end() ? archives->front() : *published));
  return find({.store = std::move(archive)});
}

absl::StatusOr<std::unique_ptr<Dataset>> Open(const Kind& kind, const ShardSource& shards,
                                              const api::DatasetSource& source, job::Split split,
                                              const api::Label& label) {
  if (label.numbers()) {
    return absl::UnimplementedError(
        absl::StrCat(shards.store->uri(), ": ", kind.name,
                     " has classes alone; set dataset.label.type to Class"));
  }
  const bool train = split == job::Split::kTrain;
  ShardedDataset::Contents contents;
  HETERO_RETURN_IF_ERROR(FindFiles(shards, kind, train, &contents));
  const std::string& uri = contents.store->uri();
  std::vector<SampleLocation> samples;
  for (size_t shard = 0; shard < contents.shards.size(); ++shard) {
    const storage::Object& file = contents.shards[shard];
    if (file.size % kind.record() != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          uri, "/", file.name, ": ", file.size, " bytes are no whole number of ", kind.record(),
          ", a record of ", kind.name, "; it is cut short or of another format"));
    }
    for (int64_t offset = 0; offset < file.size; offset += kind.record()) {
      samples.push_back({.offset = offset,
                         .length = static_cast<uint32_t>(kind.record()),
                         .shard = static_cast<uint32_t>(shard)});
    }
  }
  contents.samples = SampleTable(std::move(samples));
  HETERO_RETURN_IF_ERROR(CheckImage(uri, source, kShape));
  contents.rule = kind.names_file;
  const bool labels = label.type == api::LabelType::kClass;
  auto dataset = std::make_unique<Cifar>(
      kind, labels, ReadNames(*contents.store, contents.shards.front().name, kind));
  HETERO_RETURN_IF_ERROR(
      dataset->Fill(kind.name, std::move(contents), source, labels ? kind.classes : 0));
  return dataset;
}

absl::Status NoField(const api::DatasetSource& source, const Kind& kind, absl::string_view has) {
  return absl::InvalidArgumentError(absl::StrCat("dataset ", source.uri, ": ", kind.name, has,
                                                 "; remove the rest of dataset.fields"));
}

}  // namespace

bool IsCifar10Name(std::string_view name) {
  return IsBatch(name) || IsTestBatch(name) || LastPart(name) == kArchive10;
}
bool IsCifar100Name(std::string_view name) {
  return IsTrain(name) || IsTest(name) || LastPart(name) == kArchive100;
}
bool IsCifar10Folder(std::string_view name) { return name == "cifar-10-batches-bin"; }
bool IsCifar100Folder(std::string_view name) { return name == "cifar-100-binary"; }

absl::StatusOr<std::unique_ptr<Dataset>> OpenCifar10(const ShardSource& shards,
                                                     const api::DatasetSource& source,
                                                     job::Split split, const api::Label& label) {
  if (source.fields != api::SampleFields()) {
    return NoField(source, kCifar10, " has no fields of other names");
  }
  return Open(kCifar10, shards, source, split, label);
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenCifar100(const ShardSource& shards,
                                                      const api::DatasetSource& source,
                                                      job::Split split, const api::Label& label) {
  const std::string& field = source.fields.label.field;
  if (!source.fields.image.empty() || !source.fields.mask.empty() || source.fields.label.offset ||
      (!field.empty() && field != "fine" && field != "coarse")) {
    return NoField(source, kFine, " has the labels fine and coarse");
  }
  return Open(field == "coarse" ? kCoarse : kFine, shards, source, split, label);
}

}  // namespace hetero::source
