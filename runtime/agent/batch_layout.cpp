#include "runtime/agent/batch_layout.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace hetero::agent {
namespace {

constexpr int64_t kAlignment = 64;

int64_t Aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

int64_t ItemBytes(const FieldLayout& field) {
  if (field.dtype == "uint8") return 1;
  return field.dtype == "float32" ? int64_t{sizeof(float)} : int64_t{sizeof(int64_t)};
}

// PyTorch's class indices and numbers of samples are 64 bits wide.
void WriteIntegers(const auto& numbers, const BatchPart& part, uint8_t* out) {
  for (int64_t i = part.first; i < part.first + part.count; ++i, out += sizeof(int64_t)) {
    const int64_t number = numbers[static_cast<size_t>(i)];
    std::memcpy(out, &number, sizeof number);
  }
}

}  // namespace

SampleLayout LayoutOf(const feed::SampleProducer& producer, job::Split split) {
  if (split == job::Split::kValidation && !producer.has_validation()) return {};
  const pipeline::Pipeline& pipeline = producer.pipeline(split);
  return {pipeline.output(), pipeline.views(), producer.fields(split)};
}

int64_t ImageBytes(int64_t samples, const SampleLayout& layout) {
  return samples * layout.views * layout.shape.height * layout.shape.width * layout.shape.channels;
}

int64_t SlotBytes(int64_t samples, const SampleLayout& layout) {
  const std::vector<FieldLayout> fields = FieldsOf(layout, {.first = 0, .count = samples});
  return Aligned(fields.back().offset + fields.back().bytes);
}

std::vector<FieldLayout> FieldsOf(const SampleLayout& of_sample) {
  const api::ImageShape& shape = of_sample.shape;
  std::vector<FieldLayout> layout = {
      {.name = "image", .dtype = "uint8", .shape = {shape.height, shape.width, shape.channels}}};
  if (of_sample.views > 1) {
    layout.front().shape.insert(layout.front().shape.begin(), of_sample.views);
  }
  if (!of_sample.fields) layout.push_back({.name = "label", .dtype = "int64"});
  for (const bool labels : {true, false}) {
    for (const job::FieldSpec& field : of_sample.fields.value_or(std::vector<job::FieldSpec>())) {
      if ((field.name == "label") != labels) continue;
      layout.push_back({.name = field.name,
                        .dtype = std::string(job::NameOf(field.type)),
                        .shape = {field.shape.begin(), field.shape.end()}});
    }
  }
  layout.push_back({.name = "id", .dtype = "int64"});
  return layout;
}

std::vector<FieldLayout> FieldsOf(const SampleLayout& layout, const BatchPart& part) {
  std::vector<FieldLayout> fields = FieldsOf(layout);
  int64_t offset = 0;
  for (FieldLayout& field : fields) {
    field.offset = offset;
    field.bytes = part.count * ItemBytes(field);
    for (const int64_t dimension : field.shape) field.bytes *= dimension;
    field.shape.insert(field.shape.begin(), part.count);
    offset = Aligned(offset + field.bytes);
  }
  return fields;
}

void WriteFields(const feed::Batch& batch, const BatchPart& part,
                 const std::vector<FieldLayout>& fields, uint8_t* slot) {
  for (const FieldLayout& field : fields) {
    uint8_t* out = slot + field.offset;
    if (field.name == "id") {
      WriteIntegers(batch.sample_ids, part, out);
    } else if (field.name == "label" && !batch.fields) {
      WriteIntegers(batch.labels, part, out);
    } else if (batch.fields && part.count > 0) {
      for (const feed::FieldTensor& tensor : *batch.fields) {
        if (tensor.spec.name != field.name) continue;
        std::copy_n(tensor.of(part.first), part.count * tensor.spec.bytes(), out);
      }
    }
  }
}

BatchPart PartOf(int64_t samples, int64_t parts, int64_t micro) {
  const int64_t size = samples / parts, longer = samples % parts;
  return {.first = micro * size + std::min(micro, longer),
          .count = size + (micro < longer ? 1 : 0)};
}

}  // namespace hetero::agent
