#include "runtime/local/inspection.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/local/contact_sheet.h"
#include "runtime/pipeline/decode.h"
#include "runtime/pipeline/resize.h"
#include "runtime/source/dataset.h"
#include "runtime/source/sample_finder.h"

namespace hetero::local {
namespace {

constexpr int64_t kPicturesOnSheet = 36;
constexpr int32_t kLongerSideOnSheet = 192;  // pixels

absl::Status Decode(const source::RawSample& sample, pipeline::Image* image) {
  switch (sample.encoding) {
    case source::Encoding::kJpeg:
      return pipeline::DecodeJpeg(sample.bytes, image);
    case source::Encoding::kPng:
      return pipeline::DecodePng(sample.bytes, image);
    case source::Encoding::kRaw:
      pipeline::Copy({sample.shape, sample.bytes.data()}, image);
      return absl::OkStatus();
  }
  __builtin_unreachable();
}

const char* NameOf(source::Encoding encoding) {
  switch (encoding) {
    case source::Encoding::kJpeg:
      return "JPEG";
    case source::Encoding::kPng:
      return "PNG";
    case source::Encoding::kRaw:
      return "raw";
  }
  __builtin_unreachable();
}

// A photograph fits on the sheet once it is smaller.
pipeline::Image Shrunk(const pipeline::Image& image) {
  const api::ImageShape& shape = image.shape;
  const int32_t longer = std::max(shape.height, shape.width);
  if (longer <= kLongerSideOnSheet) return image;
  const auto scaled = [&](int32_t side) {
    return std::max<int32_t>(1, static_cast<int32_t>(int64_t{side} * kLongerSideOnSheet / longer));
  };
  pipeline::Image small;
  pipeline::ResizeBox(image.view(), {0, 0, shape.height, shape.width},
                      {scaled(shape.height), scaled(shape.width)}, api::Interpolation::kBilinear,
                      &small);
  return small;
}

class Inspector {
 public:
  Inspector(const source::Dataset& dataset, const InspectOptions& options, Inspection* inspection)
      : dataset_(dataset), options_(options), inspection_(inspection) {}

  absl::Status Look() {
    const int64_t count = std::min(options_.samples, dataset_.size());
    for (int64_t i = 0; i < count; ++i) {
      // Evenly, without the overflow of i * size.
      const int64_t id = dataset_.size() / count * i + dataset_.size() % count * i / count;
      const bool on_sheet =
          !options_.sheet.empty() && i % ((count - 1) / kPicturesOnSheet + 1) == 0;
      HETERO_RETURN_IF_ERROR(LookAt(id, on_sheet));
    }
    for (std::vector<int64_t>* figures :
         {&inspection_->bytes, &inspection_->heights, &inspection_->widths}) {
      std::sort(figures->begin(), figures->end());
    }
    if (options_.sheet.empty()) return absl::OkStatus();
    if (entries_.empty()) {
      return absl::DataLossError(
          absl::StrCat("no picture for ", options_.sheet, ": ", inspection_->first_bad));
    }
    return WriteContactSheet(entries_, options_.sheet);
  }

 private:
  absl::Status LookAt(int64_t id, bool on_sheet) {
    ++inspection_->looked_at;
    absl::Status status = dataset_.Read(id, &sample_);
    if (status.ok()) {
      status = Decode(sample_, &image_);
      if (status.ok()) status = LookAtMask();
      if (absl::IsDataLoss(status)) {
        status = absl::DataLossError(absl::StrCat(dataset_.Describe(id), ": ", status.message()));
      }
    }
    if (absl::IsDataLoss(status)) {
      if (++inspection_->bad == 1) inspection_->first_bad = std::string(status.message());
      return absl::OkStatus();
    }
    HETERO_RETURN_IF_ERROR(status);
    ++inspection_->encodings[NameOf(sample_.encoding)];
    inspection_->bytes.push_back(static_cast<int64_t>(sample_.bytes.size()));
    inspection_->heights.push_back(image_.shape.height);
    inspection_->widths.push_back(image_.shape.width);
    const bool is_class = options_.label.type == api::LabelType::kClass;
    if (is_class) ++inspection_->labels[sample_.label];
    for (const uint8_t value : mask_.bytes) ++inspection_->mask_pixels[value];
    if (on_sheet) {
      entries_.push_back(
          {Shrunk(image_),
           absl::StrCat("#", id, is_class ? " " + dataset_.ClassName(sample_.label) : "")});
    }
    return absl::OkStatus();
  }

  absl::Status LookAtMask() {
    if (options_.source.fields.mask.empty()) return absl::OkStatus();
    const api::Size size = {image_.shape.height, image_.shape.width};
    const absl::Status status = pipeline::DecodeMask(sample_.mask, size, &mask_);
    return absl::Status(status.code(), status.ok() ? "" : absl::StrCat("mask: ", status.message()));
  }

  const source::Dataset& dataset_;
  const InspectOptions& options_;
  Inspection* const inspection_;
  source::RawSample sample_;
  pipeline::Image image_;
  pipeline::Image mask_;  // empty where there are none
  std::vector<ContactSheetEntry> entries_;
};

}  // namespace

absl::StatusOr<Inspection> InspectDataset(const InspectOptions& options) {
  api::DatasetSource source = options.source;
  HETERO_ASSIGN_OR_RETURN(source.format, source::DetectFormat(source, options.storage));
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<source::Dataset> dataset,
                          source::OpenDataset(source, job::Split::kTrain, /*seed=*/0, options.label,
                                              options.storage, source::ScanningFinder()));
  Inspection inspection;
  inspection.uri = source.uri;
  inspection.format = source.format;
  inspection.shards = dataset->shards();
  inspection.samples = dataset->size();
  inspection.classes = dataset->classes();
  inspection.fingerprint = dataset->fingerprint();
  inspection.fields = source.fields;
  inspection.label = options.label;
  HETERO_RETURN_IF_ERROR(Inspector(*dataset, options, &inspection).Look());
  return inspection;
}

}  // namespace hetero::local
