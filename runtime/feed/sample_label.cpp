#include "runtime/feed/sample_label.h"

#include <algorithm>
#include <cstring>

namespace hetero::feed {
namespace {

constexpr char kLabel[] = "label";

}  // namespace

absl::Status TakeLabel(const source::RawSample& sample, bool is_class, int64_t index,
                       Batch* batch) {
  if (!batch->fields) {
    batch->labels[static_cast<size_t>(index)] = sample.label;
    return absl::OkStatus();
  }
  for (FieldTensor& field : *batch->fields) {
    if (field.spec.name != kLabel) continue;
    const auto size = static_cast<size_t>(field.spec.bytes());
    if (is_class) {
      const int64_t label = sample.label;
      std::memcpy(field.of(index), &label, sizeof label);
    } else if (sample.fields.size() >= size) {
      std::memcpy(field.of(index), sample.fields.data(), size);
    } else {
      return absl::InternalError("field label was not read");
    }
  }
  return absl::OkStatus();
}

int64_t ClassOf(const Batch& batch, int64_t index) {
  if (!batch.fields) return batch.labels[static_cast<size_t>(index)];
  int64_t label = -1;
  for (const FieldTensor& field : *batch.fields) {
    if (field.spec.name == kLabel) std::memcpy(&label, field.of(index), sizeof label);
  }
  return label;
}

}  // namespace hetero::feed
