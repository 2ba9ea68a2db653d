#include "runtime/source/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "runtime/source/declared.h"
#include "runtime/source/fingerprint.h"
#include "runtime/source/idx_file.h"
#include "runtime/source/idx_numbers.h"

namespace hetero::source {
namespace {

constexpr uint32_t kMaxSide = 32768;  // count x height x width then fits in 64 bits
constexpr size_t kImagesHeader = 16;
constexpr size_t kLabelsHeader = 8;

struct FileKind {
  const char* noun;
  uint32_t magic;
  size_t header;
};
constexpr FileKind kImages = {"images", kIdxImagesMagic, kImagesHeader};
constexpr FileKind kLabels = {"labels", kIdxLabelsMagic, kLabelsHeader};

absl::Status CheckMagic(const IdxFile& file, const FileKind& kind) {
  if (file.bytes.size() < kind.header) {
    return absl::DataLossError(absl::StrCat(file.path, ": ", file.bytes.size(),
                                            " bytes, but the header of an IDX ", kind.noun,
                                            " file alone has ", kind.header));
  }
  const uint32_t found = file.Word(0);
  if (found == kind.magic) return absl::OkStatus();
  const char* what = found == kIdxImagesMagic   ? " (an IDX images file)"
                     : found == kIdxLabelsMagic ? " (an IDX labels file)"
                                                : "";
  return absl::InvalidArgumentError(absl::StrCat(
      file.path, ": byte 0: magic 0x", absl::Hex(found, absl::kZeroPad8), what, ", expected 0x",
      absl::Hex(kind.magic, absl::kZeroPad8), " of an IDX ", kind.noun, " file"));
}

absl::StatusOr<IdxFile> Load(const IdxFolder& folder, job::Split split, const FileKind& kind) {
  const std::array<std::string, 4> names =
      IdxSpellings(split, kind.noun, kind.magic & 0xff, "ubyte");
  HETERO_ASSIGN_OR_RETURN(IdxFile file, LoadIdx(folder, names));
  if (file.path.empty()) {
    return absl::NotFoundError(absl::StrCat("no IDX ", kind.noun, " for ",
                                            split == job::Split::kTrain ? "training" : "validation",
                                            " in ", folder.name, ": looked for ", names[0], ", ",
                                            names[2], ", ", names[1], " and ", names[3]));
  }
  HETERO_RETURN_IF_ERROR(CheckMagic(file, kind));
  return file;
}

class Idx : public Dataset {
 public:
  explicit Idx(IdxFile images) : images_(std::move(images)) {
    shape_ = {static_cast<int32_t>(images_.Word(2)), static_cast<int32_t>(images_.Word(3)), 1};
    picture_ = static_cast<size_t>(shape_.height) * shape_.width;
  }

  void HaveClasses(IdxFile labels, std::optional<int32_t> declared) {
    labels_ = std::move(labels);
    classes_ = declared.value_or(
        1 + *std::max_element(labels_.bytes.begin() + kLabelsHeader, labels_.bytes.end()));
  }
  void HaveNumbers(IdxNumbers numbers) { numbers_ = std::move(numbers); }
  // Labels that are no classes, or none.
  void DeclareClasses(std::optional<int32_t> declared) { classes_ = declared.value_or(0); }

  int64_t size() const override { return images_.Word(1); }
  int32_t classes() const override { return classes_; }
  api::ImageShape image() const override { return shape_; }

  absl::Status Read(int64_t id, RawSample* sample) const override {
    if (id < 0 || id >= size()) {
      return absl::OutOfRangeError(absl::StrCat(Describe(id), ": records end at ", size() - 1));
    }
    if (numbers_) numbers_->Read(id, &sample->fields);
    const uint8_t label = labels_.bytes.empty() ? 0 : labels_.bytes[kLabelsHeader + id];
    if (!labels_.bytes.empty() && label >= classes_) {
      return absl::DataLossError(absl::StrCat(labels_.path, ": record ", id, ": label ", label,
                                              " is not in [0, ", classes_, ")"));
    }
    const auto begin = images_.bytes.begin() + kImagesHeader + id * picture_;
    sample->encoding = Encoding::kRaw;
    sample->shape = shape_;
    sample->label = label;
    sample->bytes.assign(begin, begin + picture_);
    return absl::OkStatus();
  }

  std::string Describe(int64_t id) const override {
    return absl::StrCat(images_.path, ": record ", id);
  }

  // Over the contents, so that a gzipped and a plain copy are the same dataset.
  std::string fingerprint() const override {
    Fingerprint print;
    print.Add("idx");
    for (const IdxFile* file : {&images_, numbers_ ? &numbers_->file() : &labels_}) {
      if (file->bytes.empty()) continue;
      print.Add(static_cast<uint64_t>(file->bytes.size()));
      print.Add(static_cast<uint64_t>(crc32_z(0, file->bytes.data(), file->bytes.size())));
    }
    return print.ToHex();
  }

 private:
  IdxFile images_;
  IdxFile labels_;                     // of classes; else empty
  std::optional<IdxNumbers> numbers_;  // in their place
  api::ImageShape shape_;
  size_t picture_ = 0;  // bytes of one picture
  int32_t classes_ = 0;
};

absl::Status CheckImages(const IdxFile& images) {
  const uint64_t count = images.Word(1);
  const uint32_t height = images.Word(2);
  const uint32_t width = images.Word(3);
  if (count == 0) {
    return absl::InvalidArgumentError(absl::StrCat(images.path, ": byte 4: holds no images"));
  }
  if (height == 0 || height > kMaxSide || width == 0 || width > kMaxSide) {
    return absl::InvalidArgumentError(absl::StrCat(images.path, ": byte 8: pictures of ", height,
                                                   "x", width, "; sides go from 1 to ", kMaxSide));
  }
  return CheckIdxBody(images, kImages.noun, kImages.header, count * height * width);
}

absl::Status CheckSameCount(const IdxFile& images, const IdxFile& labels) {
  if (labels.Word(1) == images.Word(1)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      images.path, " has ", images.Word(1), " images but ", labels.path, " has ", labels.Word(1),
      " labels (byte 4 of each); the two files belong to different sets"));
}

// Who misses one file usually misses more of them.
absl::Status NameAllFiles(const absl::Status& status) {
  if (!absl::IsNotFound(status)) return status;
  return absl::NotFoundError(absl::StrCat(status.message(), "; ", kIdxFiles));
}

}  // namespace

bool IsIdxImagesName(std::string_view name) {
  absl::string_view stem(name.data(), name.size());
  absl::ConsumeSuffix(&stem, ".gz");
  return absl::EndsWith(stem, "-images-idx3-ubyte") || absl::EndsWith(stem, "-images.idx3-ubyte");
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenIdx(const std::string& root,
                                                 const storage::Store* store,
                                                 const api::DatasetSource& source, job::Split split,
                                                 const api::Label& label) {
  const IdxFolder folder = {root, store};
  absl::StatusOr<IdxFile> images = Load(folder, split, kImages);
  if (!images.ok()) return NameAllFiles(images.status());
  absl::StatusOr<IdxFile> labels = IdxFile();
  if (label.type == api::LabelType::kClass) {
    labels = Load(folder, split, kLabels);
    if (!labels.ok()) return NameAllFiles(labels.status());
  }
  HETERO_RETURN_IF_ERROR(CheckImages(*images));
  std::optional<IdxNumbers> numbers;
  if (label.numbers()) {
    HETERO_ASSIGN_OR_RETURN(numbers, IdxNumbers::Open(folder, split, label));
    HETERO_RETURN_IF_ERROR(CheckSameCount(*images, numbers->file()));
  }
  if (!labels->bytes.empty()) {
    HETERO_RETURN_IF_ERROR(CheckIdxBody(*labels, kLabels.noun, kLabels.header, labels->Word(1)));
    HETERO_RETURN_IF_ERROR(CheckSameCount(*images, *labels));
  }
  const std::string where = images->path;
  auto dataset = std::make_unique<Idx>(*std::move(images));
  if (numbers) {
    dataset->HaveNumbers(*std::move(numbers));
  }
  if (labels->bytes.empty()) {
    dataset->DeclareClasses(source.classes);
  } else {
    dataset->HaveClasses(*std::move(labels), source.classes);
  }
  HETERO_RETURN_IF_ERROR(CheckSamples(where, source, dataset->size()));
  HETERO_RETURN_IF_ERROR(CheckImage(where, source, dataset->image()));
  return dataset;
}

}  // namespace hetero::source
