#include "runtime/local/dataset_lines.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/enums.h"

namespace hetero::local {
namespace {

std::string FieldLines(const api::SampleFields& fields) {
  if (fields == api::SampleFields()) return "";
  std::string text = "    fields:\n";
  if (!fields.image.empty()) absl::StrAppend(&text, "      image: ", fields.image, "\n");
  if (!fields.mask.empty()) absl::StrAppend(&text, "      mask: ", fields.mask, "\n");
  if (fields.label == api::LabelField()) return text;
  absl::StrAppend(&text, "      label:\n");
  if (!fields.label.field.empty()) {
    absl::StrAppend(&text, "        field: ", fields.label.field, "\n");
  }
  if (fields.label.offset) absl::StrAppend(&text, "        offset: ", *fields.label.offset, "\n");
  return text;
}

}  // namespace

std::string DatasetLines(const api::DatasetSource& source, const api::Label& label) {
  std::string text = absl::StrCat("\nIn the manifest\n  dataset:\n    uri: ", source.uri,
                                  "\n    format: ", std::string(api::NameOf(source.format)), "\n");
  if (source.samples) absl::StrAppend(&text, "    samples: ", *source.samples, "\n");
  if (source.classes) absl::StrAppend(&text, "    classes: ", *source.classes, "\n");
  if (source.image) {
    absl::StrAppend(&text, "    image: {height: ", source.image->height,
                    ", width: ", source.image->width, ", channels: ", source.image->channels,
                    "}\n");
  }
  if (label.type != api::LabelType::kClass) {
    absl::StrAppend(&text, "    label:\n      type: ", std::string(api::NameOf(label.type)), "\n");
    if (!label.shape.empty()) {
      absl::StrAppend(&text, "      shape: [", absl::StrJoin(label.shape, ", "), "]\n");
    }
    if (!label.field.empty()) absl::StrAppend(&text, "      field: ", label.field, "\n");
  }
  text += FieldLines(source.fields);
  if (source.index && !source.index->uri.empty()) {
    absl::StrAppend(&text, "    index: {uri: ", source.index->uri, "}\n");
  }
  return text;
}

}  // namespace hetero::local
