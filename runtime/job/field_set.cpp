#include "runtime/job/field_set.h"

#include <algorithm>

namespace hetero::job {

std::string_view NameOf(FieldType type) {
  switch (type) {
    case FieldType::kInt64:
      return "int64";
    case FieldType::kFloat32:
      return "float32";
    case FieldType::kUint8:
      return "uint8";
  }
  __builtin_unreachable();
}

int64_t BytesOf(FieldType type) {
  switch (type) {
    case FieldType::kInt64:
      return 8;
    case FieldType::kFloat32:
      return 4;
    case FieldType::kUint8:
      return 1;
  }
  __builtin_unreachable();
}

int64_t FieldSpec::numbers() const {
  int64_t numbers = 1;
  for (const int32_t dimension : shape) numbers *= dimension;
  return numbers;
}

FieldSet FieldsOf(const api::Label& label) {
  switch (label.type) {
    case api::LabelType::kClass:
      return std::nullopt;
    case api::LabelType::kNone:
      return std::vector<FieldSpec>();
    case api::LabelType::kInt64:
      return std::vector<FieldSpec>{{"label", FieldType::kInt64, label.shape}};
    case api::LabelType::kFloat32:
      return std::vector<FieldSpec>{{"label", FieldType::kFloat32, label.shape}};
  }
  return std::nullopt;
}

std::vector<FieldSpec> WithMask(const FieldSet& fields, const std::string& name,
                                const api::Size& size) {
  std::vector<FieldSpec> all =
      fields.value_or(std::vector<FieldSpec>{{"label", FieldType::kInt64, {}}});
  all.push_back({name, FieldType::kUint8, {size.height, size.width}});
  std::sort(all.begin(), all.end(),
            [](const FieldSpec& a, const FieldSpec& b) { return a.name < b.name; });
  return all;
}

std::string FieldHeading(std::string_view name, std::string_view type,
                         const std::vector<int32_t>& shape) {
  std::string text = std::string(name) + " " + std::string(type) + " [";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ",";
    text += std::to_string(shape[i]);
  }
  return text + "]\n";
}

}  // namespace hetero::job
