#include "runtime/agent/batch_layout.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace hetero::agent {
namespace {

constexpr int64_t kAlignment = 64;

int64_t Aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

int64_t ItemBytes(const FieldLayout& field) {
  return field.dtype == "uint8" ? 1 : static_cast<int64_t>(sizeof(int64_t));
}

// PyTorch's class indices and numbers of samples are 64 bits wide.
void WriteIntegers(const auto& numbers, const BatchPart& part, uint8_t* out) {
  for (int64_t i = part.first; i < part.first + part.count; ++i, out += sizeof(int64_t)) {
    const int64_t number = numbers[static_cast<size_t>(i)];
    std::memcpy(out, &number, sizeof number);
  }
}

}  // namespace

int64_t ImageBytes(int64_t samples, const api::ImageShape& shape) {
  return samples * shape.height * shape.width * shape.channels;
}

int64_t SlotBytes(int64_t samples, const api::ImageShape& shape) {
  const std::vector<FieldLayout> fields = FieldsOf(shape, {.first = 0, .count = samples});
  return Aligned(fields.back().offset + fields.back().bytes);
}

std::vector<FieldLayout> FieldsOf(const api::ImageShape& shape) {
  return {{.name = "image", .dtype = "uint8", .shape = {shape.height, shape.width, shape.channels}},
          {.name = "label", .dtype = "int64"},
          {.name = "id", .dtype = "int64"}};
}

std::vector<FieldLayout> FieldsOf(const api::ImageShape& shape, const BatchPart& part) {
  std::vector<FieldLayout> fields = FieldsOf(shape);
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
    if (field.name == "label") WriteIntegers(batch.labels, part, slot + field.offset);
    if (field.name == "id") WriteIntegers(batch.sample_ids, part, slot + field.offset);
  }
}

BatchPart PartOf(int64_t samples, int64_t parts, int64_t micro) {
  const int64_t size = samples / parts, longer = samples % parts;
  return {.first = micro * size + std::min(micro, longer),
          .count = size + (micro < longer ? 1 : 0)};
}

}  // namespace hetero::agent
