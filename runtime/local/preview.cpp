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
#include "runtime/feed/sample_producer.h"
#include "runtime/local/contact_sheet.h"
#include "runtime/local/ignored_fields.h"

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
std::string LabelText(const source::Dataset& dataset, const feed::Batch& batch, int64_t index) {
  if (!batch.fields) {
    return absl::StrCat(" ", dataset.ClassName(batch.labels[static_cast<size_t>(index)]));
  }
  std::string text;
  for (const feed::FieldTensor& field : *batch.fields) {
    // A picture's first numbers say nothing.
    if (field.spec.type == job::FieldType::kInt64) text += Numbers<int64_t>(field, index);
    if (field.spec.type == job::FieldType::kFloat32) text += Numbers<float>(field, index);
  }
  return text;
}

}  // namespace

absl::Status WritePreview(const api::HeteroTrainingJob& given, int64_t samples,
                          const std::string& file) {
  // Nothing of the validation data is shown, so it need not be there.
  api::HeteroTrainingJob job = WithoutSecrets(given);
  job.spec.dataset.validation.reset();
  const std::vector<api::FieldError> unsupported = api::UnsupportedFields(job);
  if (!unsupported.empty()) return absl::InvalidArgumentError(api::FormatErrors(unsupported));
  HETERO_ASSIGN_OR_RETURN(std::unique_ptr<feed::SampleProducer> producer,
                          feed::SampleProducer::Create(job));
  const source::Dataset& dataset = producer->dataset(job::Split::kTrain);
  const int64_t count = std::min(samples, dataset.size());
  feed::Batch batch = producer->Allocate({.slots = {.first = 0, .count = count}}, feed::NewSlab);
  const int64_t bytes = producer->pipeline(job::Split::kTrain).output_bytes();
  std::vector<ContactSheetEntry> entries;
  for (int64_t i = 0; i < count; ++i) {
    std::optional<feed::BadSample> bad;
    HETERO_RETURN_IF_ERROR(producer->Produce(&batch, i, &bad));
    pipeline::Image image;
    image.Reshape(batch.shape);
    std::copy_n(batch.images.data() + i * bytes, bytes, image.bytes.data());
    entries.push_back(
        {std::move(image), absl::StrCat("#", batch.sample_ids[i], LabelText(dataset, batch, i))});
  }
  return WriteContactSheet(entries, file);
}

}  // namespace hetero::local
