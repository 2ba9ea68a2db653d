#include "runtime/local/preview.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/manifest.h"
#include "api/unsupported_fields.h"
#include "base/status_macros.h"
#include "runtime/feed/sample_label.h"
#include "runtime/feed/sample_producer.h"
#include "runtime/local/contact_sheet.h"
#include "runtime/local/ignored_fields.h"
#include "runtime/process/python.h"

namespace hetero::local {
namespace {

constexpr int64_t kNumbersShown = 4;

template <typename T>
std::string Numbers(const feed::FieldTensor& field, int64_t index) {
  std::string text;
  const int64_t shown = std::min(field.spec.numbers(), kNumbersShown);
  for (int64_t i = 0; i < shown; ++i) {
    T number;
    std::memcpy(&number, field.of(index) + i * static_cast<int64_t>(sizeof number), sizeof number);
    absl::StrAppend(&text, " ", number);
  }
  return shown < field.spec.numbers() ? absl::StrCat(text, " ...") : text;
}

// " cat", or the first numbers of what is there in its place.
std::string LabelText(const source::Dataset& dataset, bool is_class, const feed::Batch& batch,
                      int64_t index) {
  if (is_class) {
    return absl::StrCat(" ", dataset.ClassName(static_cast<int32_t>(feed::ClassOf(batch, index))));
  }
  std::string text;
  for (const feed::FieldTensor& field : *batch.fields) {
    // A picture's first numbers say nothing.
    if (field.spec.type == job::FieldType::kInt64) text += Numbers<int64_t>(field, index);
    if (field.spec.type == job::FieldType::kFloat32) text += Numbers<float>(field, index);
  }
  return text;
}

pipeline::Image CopyOf(const api::ImageShape& shape, const uint8_t* bytes) {
  pipeline::Image image;
  image.Reshape(shape);
  std::copy_n(bytes, image.bytes.size(), image.bytes.data());
  return image;
}

// All views of a sample, beginning with those of its image, the first of which has `name`.
void AddPictures(const std::string& name, const feed::Batch& batch, int64_t index,
                 std::vector<ContactSheetEntry>* entries) {
  const int64_t bytes = batch.images.size() / batch.count() / batch.views;
  for (int32_t view = 0; view < batch.views; ++view) {
    const uint8_t* picture = batch.images.data() + (index * batch.views + view) * bytes;
    entries->push_back(
        {CopyOf(batch.shape, picture), view == 0 ? name : absl::StrCat("view ", view)});
  }
  if (!batch.fields) return;
  for (const feed::FieldTensor& field : *batch.fields) {
    const std::vector<int32_t>& shape = field.spec.shape;
    // Those of two dimensions are masks, whose small numbers would all look black.
    if (field.spec.type != job::FieldType::kUint8 || shape.size() < 3) continue;
    const int32_t count = shape.size() > 3 ? shape[0] : 1;
    const auto* const of_picture = &shape[shape.size() - 3];
    for (int32_t view = 0; view < count; ++view) {
      entries->push_back({CopyOf({of_picture[0], of_picture[1], of_picture[2]},
                                 field.of(index) + field.spec.bytes() / count * view),
                          absl::StrCat(field.spec.name, " ", view)});
    }
  }
}

}  // namespace

absl::Status WritePreview(const api::HeteroTrainingJob& given, int64_t samples,
                          const std::vector<std::string>& folders, const std::string& file) {
  // Nothing of the validation data is shown, so it need not be there.
  api::HeteroTrainingJob job = WithoutSecrets(given);
  job.spec.dataset.validation.reset();
  const std::vector<api::FieldError> unsupported = api::UnsupportedFields(job);
  if (!unsupported.empty()) return absl::InvalidArgumentError(api::FormatErrors(unsupported));
  HETERO_ASSIGN_OR_RETURN(const std::unique_ptr<interpreter::Interpreters> python,
                          process::StartPython(job.spec, folders));
  HETERO_ASSIGN_OR_RETURN(std::unique_ptr<feed::SampleProducer> producer,
                          feed::SampleProducer::Create(job, base::Clock::Real(), python.get()));
  const source::Dataset& dataset = producer->dataset(job::Split::kTrain);
  const bool is_class =
      job.spec.dataset.label.value_or(api::Label()).type == api::LabelType::kClass;
  const int64_t count = std::min(samples, dataset.size());
  feed::Batch batch = producer->Allocate({.slots = {.first = 0, .count = count}}, feed::NewSlab);
  std::vector<ContactSheetEntry> entries;
  for (int64_t i = 0; i < count; ++i) {
    std::optional<feed::BadSample> bad;
    HETERO_RETURN_IF_ERROR(producer->Produce(&batch, i, &bad));
    const std::string name = absl::StrCat("#", batch.sample_ids[static_cast<size_t>(i)],
                                          LabelText(dataset, is_class, batch, i));
    AddPictures(name, batch, i, &entries);
  }
  return WriteContactSheet(entries, file);
}

}  // namespace hetero::local
