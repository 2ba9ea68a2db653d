#include "runtime/source/sample_rule.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "api/enums.h"

namespace hetero::source {
namespace {

std::vector<std::string> Names(std::string_view text) {
  return absl::StrSplit(absl::string_view(text.data(), text.size()), ';', absl::SkipEmpty());
}

}  // namespace

std::string SampleRule::Text() const {
  std::string text = absl::StrCat("image ", absl::StrJoin(image, ";"));
  if (masks()) absl::StrAppend(&text, ", mask ", absl::StrJoin(mask, ";"));
  if (label.empty()) return text;
  absl::StrAppend(&text, ", label ", absl::StrJoin(label, ";"));
  if (classes()) return absl::StrCat(text, " + ", offset);
  const std::string_view type = api::NameOf(kind.type);
  return absl::StrCat(text, " ", absl::string_view(type.data(), type.size()), " [",
                      absl::StrJoin(kind.shape, ","), "]");
}

SampleRule RuleOf(const api::DatasetSource& source, const api::Label& label,
                  const UsualNames& usual) {
  SampleRule rule;
  rule.kind = label;
  rule.image = Names(source.fields.image.empty() ? usual.image : source.fields.image);
  rule.mask = Names(source.fields.mask);
  rule.offset = source.fields.label.offset.value_or(0);
  if (label.type == api::LabelType::kNone) return rule;
  if (!label.field.empty()) {
    rule.label = {label.field};
  } else if (!source.fields.label.field.empty()) {
    rule.label = Names(source.fields.label.field);
  } else {
    rule.label = Names(rule.classes() ? usual.classes : usual.numbers);
  }
  return rule;
}

absl::StatusOr<int32_t> ClassOf(int64_t found, const SampleRule& rule) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() - 1;
  if (found < -kMost || found > kMost || found + rule.offset < -kMost ||
      found + rule.offset > kMost) {
    return absl::DataLossError(absl::StrCat("label ", found, " is no class"));
  }
  return static_cast<int32_t>(found + rule.offset);
}

}  // namespace hetero::source
