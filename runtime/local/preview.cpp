#include "runtime/local/preview.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/manifest.h"
#include "api/unsupported_fields.h"
#include "base/status_macros.h"
#include "runtime/feed/sample_producer.h"
#include "runtime/local/contact_sheet.h"

namespace hetero::local {
absl::Status WritePreview(const api::HeteroTrainingJob& given, int64_t samples,
                          const std::string& file) {
  // Nothing of the validation data is shown, so it need not be there.
  api::HeteroTrainingJob job = given;
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
    entries.push_back({std::move(image), absl::StrCat("#", batch.sample_ids[i], " ",
                                                      dataset.ClassName(batch.labels[i]))});
  }
  return WriteContactSheet(entries, file);
}

}  // namespace hetero::local
