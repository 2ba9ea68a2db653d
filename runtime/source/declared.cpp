#include "runtime/source/declared.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace hetero::source {
namespace {

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

absl::Status Differs(std::string_view where, absl::string_view field, absl::string_view declared,
                     absl::string_view found) {
  return absl::InvalidArgumentError(absl::StrCat(View(where), ": the manifest declares ", field,
                                                 " ", declared, " but the data has ", found,
                                                 "; correct or remove dataset.", field));
}

std::string Text(const api::ImageShape& shape) {
  return absl::StrCat("[", shape.height, ", ", shape.width, ", ", shape.channels, "]");
}

}  // namespace

absl::Status CheckSamples(std::string_view where, const api::DatasetSource& declared,
                          int64_t found) {
  if (!declared.samples || *declared.samples == found) return absl::OkStatus();
  return Differs(where, "samples", absl::StrCat(*declared.samples), absl::StrCat(found));
}

absl::Status CheckClasses(std::string_view where, const api::DatasetSource& declared,
                          int32_t found) {
  if (!declared.classes || *declared.classes == found) return absl::OkStatus();
  return Differs(where, "classes", absl::StrCat(*declared.classes), absl::StrCat(found));
}

absl::Status CheckImage(std::string_view where, const api::DatasetSource& declared,
                        const api::ImageShape& found) {
  if (!declared.image || *declared.image == found) return absl::OkStatus();
  return Differs(where, "image", Text(*declared.image), Text(found));
}

}  // namespace hetero::source
