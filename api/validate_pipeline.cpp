#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "api/encode.h"
#include "api/enums.h"
#include "api/suggest.h"
#include "api/validate.h"

namespace hetero::api {
namespace {

const OperatorRule& RuleOf(OperatorKind op) {
  const auto& rules = OperatorRules();
  return *std::find_if(rules.begin(), rules.end(),
                       [op](const OperatorRule& rule) { return rule.op == op; });
}

void CheckNames(const OperatorSpec& op, const std::string& path, Findings& findings) {
  const OperatorRule& rule = RuleOf(op.op);
  const std::string name(NameOf(op.op));
  std::vector<std::string> taken(rule.required.begin(), rule.required.end());
  taken.insert(taken.end(), rule.optional.begin(), rule.optional.end());
  const nlohmann::json given = EncodeObject(op);
  for (const auto& [key, unused] : given.items()) {
    if (key == "op" || key == "repeat" || key == "placement") continue;
    if (std::find(taken.begin(), taken.end(), key) != taken.end()) continue;
    findings.Add(Child(path, key),
                 taken.empty() ? name + " takes no parameters"
                               : absl::StrCat(name, " does not take it; it takes ", Join(taken)));
  }
  for (const char* required : rule.required) {
    if (!given.contains(required)) {
      findings.Add(Child(path, required), absl::StrCat("is required for ", name));
    }
  }
}

void CheckOrder(const std::optional<Range>& range, const std::string& path, Findings& findings) {
  if (!range.has_value() || range->min <= range->max) return;
  findings.Add(path, absl::StrCat("min ", range->min, " is above max ", range->max));
}

void CheckRanges(const OperatorSpec& op, const std::string& path, Findings& findings) {
  CheckOrder(op.scale, path + ".scale", findings);
  CheckOrder(op.ratio, path + ".ratio", findings);
  CheckOrder(op.sigma, path + ".sigma", findings);
  CheckOrder(op.brightness, path + ".brightness", findings);
  CheckOrder(op.contrast, path + ".contrast", findings);
  CheckOrder(op.saturation, path + ".saturation", findings);
  CheckOrder(op.hue, path + ".hue", findings);
  CheckOrder(op.degrees, path + ".degrees", findings);
}

void CheckValues(const OperatorSpec& op, const std::string& path, Findings& findings) {
  if (op.op == OperatorKind::kResize && op.size.has_value() == op.shorter_side.has_value()) {
    findings.Add(path, "Resize needs exactly one of size and shorterSide");
  }
  if (op.op == OperatorKind::kColorJitter && !op.brightness && !op.contrast && !op.saturation &&
      !op.hue) {
    findings.Add(path, "ColorJitter needs at least one of brightness, contrast, saturation, hue");
  }
  if (op.kernel_size.has_value() && *op.kernel_size % 2 == 0) {
    findings.Add(path + ".kernelSize", absl::StrCat("must be odd, got ", *op.kernel_size));
  }
  if (op.output_channels == 2) {
    findings.Add(path + ".outputChannels", "must be 1 or 3, got 2");
  }
  if (op.op == OperatorKind::kGrayscale && op.output_channels == 1 &&
      op.probability.value_or(1.0) < 1.0) {
    findings.Add(path + ".outputChannels",
                 "must be 3 when probability is below 1, so that every sample has one shape");
  }
  if (op.mean.size() != op.std.size()) {
    findings.Add(path + ".std", absl::StrCat("must have as many entries as mean (", op.mean.size(),
                                             "), has ", op.std.size()));
  }
}

}  // namespace

const std::vector<OperatorRule>& OperatorRules() {
  using enum OperatorKind;
  static const auto& rules = *new std::vector<OperatorRule>{
      {kDecode, {}, {}},
      {kResize, {}, {"size", "shorterSide", "interpolation"}},
      {kCenterCrop, {"size"}, {}},
      {kRandomResizedCrop, {"size"}, {"scale", "ratio", "interpolation"}},
      {kHorizontalFlip, {}, {"probability"}},
      {kVerticalFlip, {}, {"probability"}},
      {kRotate, {"degrees"}, {"interpolation"}},
      {kColorJitter, {}, {"brightness", "contrast", "saturation", "hue"}},
      {kGrayscale, {}, {"outputChannels", "probability"}},
      {kGaussianBlur, {"kernelSize"}, {"sigma"}},
      {kRandomErasing, {}, {"probability", "scale", "ratio", "value"}},
      {kRandAugment, {}, {"operations", "magnitude"}},
      {kNormalize, {}, {"mean", "std"}},
      {kCast, {"type"}, {}},
      {kDelay, {"milliseconds"}, {}},
      {kPlugin, {"path", "name"}, {"parameters"}},
  };
  return rules;
}

void ValidatePipeline(const std::vector<OperatorSpec>& pipeline, Findings& findings) {
  for (size_t i = 0; i < pipeline.size(); ++i) {
    const std::string path = Element("spec.pipeline", i);
    if (findings.Broken(path)) continue;
    CheckNames(pipeline[i], path, findings);
    CheckRanges(pipeline[i], path, findings);
    CheckValues(pipeline[i], path, findings);
  }
}

}  // namespace hetero::api
