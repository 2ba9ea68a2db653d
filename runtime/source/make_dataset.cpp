#include "runtime/source/make_dataset.h"

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/source/counter_random.h"
#include "runtime/source/file.h"
#include "runtime/source/idx.h"
#include "runtime/source/idx_writer.h"
#include "runtime/source/jpeg_writer.h"
#include "runtime/source/shape_picture.h"
#include "runtime/source/staging_folder.h"

namespace hetero::source {
namespace {

constexpr int32_t kMinSide = 8;
constexpr int32_t kMaxSide = 2048;
constexpr int64_t kMaxSamples = 100'000'000;

struct SplitPlan {
  uint64_t number;         // keys the pictures, so that the splits share none
  const char* folder;      // ImageFolder
  const char* idx_prefix;  // IDX
  int64_t samples;
};

absl::Status CheckCount(const char* name, int64_t count, int32_t classes) {
  if (count >= classes && count <= kMaxSamples) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " ", count, ": must be from ", classes,
                                                 " (one picture per class) to ", kMaxSamples));
}

absl::Status Check(const MakeDatasetOptions& options) {
  if (options.format != api::DatasetFormat::kImageFolder &&
      options.format != api::DatasetFormat::kIdx) {
    return absl::InvalidArgumentError("format: make-dataset writes ImageFolder or IDX");
  }
  if (options.classes < 2 || options.classes > kShapeClasses) {
    return absl::InvalidArgumentError(
        absl::StrCat("classes ", options.classes, ": must be from 2 to ", kShapeClasses));
  }
  const auto [height, width] = options.size;
  if (height < kMinSide || height > kMaxSide || width < kMinSide || width > kMaxSide) {
    return absl::InvalidArgumentError(absl::StrCat(
        "size ", height, "x", width, ": each side must be from ", kMinSide, " to ", kMaxSide));
  }
  HETERO_RETURN_IF_ERROR(CheckCount("samples", options.samples, options.classes));
  if (options.validation_samples == 0) return absl::OkStatus();
  return CheckCount("validation_samples", options.validation_samples, options.classes);
}

absl::Status WriteImageFolder(const MakeDatasetOptions& options, const SplitPlan& split,
                              StagingFolder* staging) {
  for (int32_t label = 0; label < options.classes; ++label) {
    const std::string relative = absl::StrCat(split.folder, "/", ShapeClassName(label));
    HETERO_RETURN_IF_ERROR(staging->MakeFolder(relative));
  }
  std::vector<uint8_t> pixels;
  std::vector<uint8_t> jpeg;
  for (int64_t id = 0; id < split.samples; ++id) {
    const auto label = static_cast<int32_t>(id % options.classes);
    DrawColourShape(label, options.size, CounterRandom(PictureKey(options.seed, split.number, id)),
                    &pixels);
    HETERO_RETURN_IF_ERROR(EncodeJpeg(pixels, options.size, &jpeg));
    const std::string path =
        absl::StrCat(staging->path(), "/", split.folder, "/", ShapeClassName(label), "/",
                     absl::Dec(id, absl::kZeroPad6), ".jpg");
    HETERO_RETURN_IF_ERROR(WriteFile(path, jpeg));
  }
  return absl::OkStatus();
}

absl::Status WriteIdx(const MakeDatasetOptions& options, const SplitPlan& split,
                      StagingFolder* staging) {
  const std::string stem = absl::StrCat(staging->path(), "/", split.idx_prefix);
  const auto count = static_cast<uint32_t>(split.samples);
  auto images = IdxWriter::Create(stem + "-images-idx3-ubyte.gz", kIdxImagesMagic,
                                  {count, static_cast<uint32_t>(options.size.height),
                                   static_cast<uint32_t>(options.size.width)});
  if (!images.ok()) return images.status();
  auto labels = IdxWriter::Create(stem + "-labels-idx1-ubyte.gz", kIdxLabelsMagic, {count});
  if (!labels.ok()) return labels.status();
  std::vector<uint8_t> pixels;
  for (int64_t id = 0; id < split.samples; ++id) {
    const auto label = static_cast<uint8_t>(id % options.classes);
    DrawGreyShape(label, options.size, CounterRandom(PictureKey(options.seed, split.number, id)),
                  &pixels);
    HETERO_RETURN_IF_ERROR((*images)->Write(pixels));
    HETERO_RETURN_IF_ERROR((*labels)->Write({&label, 1}));
  }
  HETERO_RETURN_IF_ERROR((*images)->Close());
  return (*labels)->Close();
}

}  // namespace

absl::Status MakeDataset(const MakeDatasetOptions& options) {
  HETERO_RETURN_IF_ERROR(Check(options));
  auto staging = StagingFolder::Create(options.folder);
  if (!staging.ok()) return staging.status();
  const SplitPlan splits[] = {{0, "train", "train", options.samples},
                              {1, "val", "t10k", options.validation_samples}};
  const bool idx = options.format == api::DatasetFormat::kIdx;
  for (const SplitPlan& split : splits) {
    if (split.samples == 0) continue;
    const absl::Status status = idx ? WriteIdx(options, split, staging->get())
                                    : WriteImageFolder(options, split, staging->get());
    if (!status.ok()) return status;
  }
  return (*staging)->Commit();
}

}  // namespace hetero::source
