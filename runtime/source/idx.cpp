#include "runtime/source/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "runtime/source/declared.h"
#include "runtime/source/file.h"
#include "runtime/source/fingerprint.h"
#include "runtime/source/gzip.h"

namespace hetero::source {
namespace {

constexpr uint32_t kMaxSide = 32768;  // count x height x width then fits in 64 bits
constexpr size_t kImagesHeader = 16;
constexpr size_t kLabelsHeader = 8;
// Of one file, unpacked: every process holds the whole set in memory.
constexpr int64_t kMaxFileBytes = int64_t{8} << 30;

struct IdxFile {
  std::string path;
  std::vector<uint8_t> bytes;  // decompressed, header included

  // The big-endian header word `index`.
  uint32_t Word(size_t index) const {
    const uint8_t* at = bytes.data() + 4 * index;
    return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | uint32_t{at[3]};
  }
};

struct FileKind {
  const char* noun;
  uint32_t magic;
  size_t header;
};
constexpr FileKind kImages = {"images", kIdxImagesMagic, kImagesHeader};
constexpr FileKind kLabels = {"labels", kIdxLabelsMagic, kLabelsHeader};

// Plain files come first: they need no decompression.
std::array<std::string, 4> Spellings(job::Split split, const FileKind& kind) {
  const std::string stem =
      absl::StrCat(split == job::Split::kTrain ? "train-" : "t10k-", kind.noun);
  const std::string type = absl::StrCat("idx", kind.magic & 0xff, "-ubyte");
  const std::string dashed = absl::StrCat(stem, "-", type);
  const std::string dotted = absl::StrCat(stem, ".", type);
  return {dashed, dotted, dashed + ".gz", dotted + ".gz"};
}

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

absl::Status CheckBody(const IdxFile& file, const FileKind& kind, uint64_t expected) {
  const uint64_t found = file.bytes.size() - kind.header;
  if (found == expected) return absl::OkStatus();
  if (found < expected) {
    return absl::DataLossError(absl::StrCat(file.path, ": ends at byte ", file.bytes.size(),
                                            ": the header promises ", expected, " bytes of ",
                                            kind.noun, " from byte ", kind.header, " on, found ",
                                            found, "; copy the file again"));
  }
  return absl::DataLossError(absl::StrCat(
      file.path, ": ", found - expected, " trailing bytes from byte ", kind.header + expected,
      ": the header promises ", expected, " bytes of ", kind.noun, ", found ", found));
}

absl::Status LoadBytes(IdxFile* file) {
  try {
    HETERO_RETURN_IF_ERROR(ReadFile(file->path, kMaxFileBytes, &file->bytes));
    if (!IsGzip(file->bytes)) return absl::OkStatus();
    std::vector<uint8_t> packed = std::move(file->bytes);
    file->bytes = {};
    return Gunzip(file->path, packed, kMaxFileBytes, &file->bytes);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat(file->path, ": there is no memory for the whole file, and an IDX set lies in ",
                     "memory; give each process more, or convert the set to an ImageFolder"));
  }
}

absl::StatusOr<IdxFile> Load(const std::string& folder, job::Split split, const FileKind& kind) {
  const std::array<std::string, 4> names = Spellings(split, kind);
  for (const std::string& name : names) {
    IdxFile file{absl::StrCat(folder, "/", name), {}};
    std::error_code ignored;
    if (!std::filesystem::exists(file.path, ignored)) continue;
    HETERO_RETURN_IF_ERROR(LoadBytes(&file));
    HETERO_RETURN_IF_ERROR(CheckMagic(file, kind));
    return file;
  }
  return absl::NotFoundError(absl::StrCat("no IDX ", kind.noun, " for ",
                                          split == job::Split::kTrain ? "training" : "validation",
                                          " in ", folder, ": looked for ", names[0], ", ", names[2],
                                          ", ", names[1], " and ", names[3]));
}

class Idx : public Dataset {
 public:
  Idx(IdxFile images, IdxFile labels, std::optional<int32_t> declared_classes)
      : images_(std::move(images)), labels_(std::move(labels)) {
    shape_ = {static_cast<int32_t>(images_.Word(2)), static_cast<int32_t>(images_.Word(3)), 1};
    picture_ = static_cast<size_t>(shape_.height) * shape_.width;
    classes_ = declared_classes.value_or(
        1 + *std::max_element(labels_.bytes.begin() + kLabelsHeader, labels_.bytes.end()));
  }

  int64_t size() const override { return images_.Word(1); }
  int32_t classes() const override { return classes_; }
  api::ImageShape image() const override { return shape_; }

  absl::Status Read(int64_t id, RawSample* sample) const override {
    if (id < 0 || id >= size()) {
      return absl::OutOfRangeError(absl::StrCat(Describe(id), ": records end at ", size() - 1));
    }
    const uint8_t label = labels_.bytes[kLabelsHeader + id];
    if (label >= classes_) {
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
    for (const IdxFile* file : {&images_, &labels_}) {
      print.Add(static_cast<uint64_t>(file->bytes.size()));
      print.Add(static_cast<uint64_t>(crc32_z(0, file->bytes.data(), file->bytes.size())));
    }
    return print.ToHex();
  }

 private:
  IdxFile images_;
  IdxFile labels_;
  api::ImageShape shape_;
  size_t picture_ = 0;  // bytes of one picture
  int32_t classes_ = 0;
};

absl::Status CheckContents(const IdxFile& images, const IdxFile& labels) {
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
  HETERO_RETURN_IF_ERROR(CheckBody(images, kImages, count * height * width));
  HETERO_RETURN_IF_ERROR(CheckBody(labels, kLabels, labels.Word(1)));
  if (labels.Word(1) != count) {
    return absl::InvalidArgumentError(absl::StrCat(
        images.path, " has ", count, " images but ", labels.path, " has ", labels.Word(1),
        " labels (byte 4 of each); the two files belong to different sets"));
  }
  return absl::OkStatus();
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

absl::StatusOr<std::unique_ptr<Dataset>> OpenIdx(const std::string& folder,
                                                 const api::DatasetSource& source,
                                                 job::Split split) {
  absl::StatusOr<IdxFile> images = Load(folder, split, kImages);
  if (!images.ok()) return NameAllFiles(images.status());
  absl::StatusOr<IdxFile> labels = Load(folder, split, kLabels);
  if (!labels.ok()) return NameAllFiles(labels.status());
  HETERO_RETURN_IF_ERROR(CheckContents(*images, *labels));
  const std::string where = images->path;
  auto dataset = std::make_unique<Idx>(*std::move(images), *std::move(labels), source.classes);
  HETERO_RETURN_IF_ERROR(CheckSamples(where, source, dataset->size()));
  HETERO_RETURN_IF_ERROR(CheckImage(where, source, dataset->image()));
  return dataset;
}

}  // namespace hetero::source
