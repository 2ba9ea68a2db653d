#include "runtime/feed/split_agreement.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hetero::feed {

absl::Status CheckSplitsAgree(const source::Dataset& train, const source::Dataset& validation) {
  const bool named = train.ClassName(0) != "0";
  for (int32_t label = 0; label < std::max(train.classes(), validation.classes()); ++label) {
    const bool in_train = label < train.classes();
    const bool in_validation = label < validation.classes();
    // Formats without names know only the labels they met.
    if (!named && !in_validation) break;
    if (in_train && in_validation && train.ClassName(label) == validation.ClassName(label))
      continue;
    const auto name = [label](const source::Dataset& dataset) {
      return label < dataset.classes() ? absl::StrCat("\"", dataset.ClassName(label), "\"")
                                       : "missing";
    };
    return absl::InvalidArgumentError(absl::StrCat(
        "spec.dataset.validation: class ", label, " is ", name(validation), " there but ",
        name(train), " in the training set; both need the same class folders"));
  }
  return absl::OkStatus();
}

}  // namespace hetero::feed
