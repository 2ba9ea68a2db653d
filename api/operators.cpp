#include "api/operators.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/decode.h"
#include "api/encode.h"
#include "api/enums.h"
#include "api/schema.h"
#include "api/validate.h"

namespace hetero::api {
namespace {

void CheckResize(const OperatorSpec& op, const std::string& path, Findings& findings) {
  if (op.size.has_value() != op.shorter_side.has_value()) return;
  findings.Add(path, "Resize needs exactly one of size and shorterSide");
}

void CheckColorJitter(const OperatorSpec& op, const std::string& path, Findings& findings) {
  if (op.brightness || op.contrast || op.saturation || op.hue) return;
  findings.Add(path, "ColorJitter needs at least one of brightness, contrast, saturation, hue");
}

// Without certainty the shape has to stay, as in RandomGrayscale.
void CompleteGrayscale(OperatorSpec& op) {
  if (!op.output_channels) op.output_channels = *op.probability < 1.0 ? 3 : 1;
}

void CheckGrayscale(const OperatorSpec& op, const std::string& path, Findings& findings) {
  if (op.output_channels != 1 || op.probability.value_or(1.0) >= 1.0) return;
  findings.Add(Child(path, "outputChannels"),
               "must be 3 when probability is below 1, so that every sample has one shape");
}

void CheckPython(const OperatorSpec& op, const std::string& path, Findings& findings) {
  if (op.placement == Placement::kTrainer) {
    findings.Add(Child(path, "placement"),
                 "Python operators run on CPU workers only; leave it out");
  }
  if (!op.outputs) return;
  const std::string image = Child(Child(path, "outputs"), "image");
  if (op.outputs->image.type.value_or(ElementType::kUint8) != ElementType::kUint8) {
    findings.Add(Child(image, "type"),
                 "is Uint8: numbers are made of pixels by Normalize, where the batch is used");
  }
  if (op.outputs->image.shape.size() == 3 && op.outputs->image.shape[2] > 64) {
    findings.Add(Child(image, "shape"), "has more than 64 channels");
  }
}

// Defaults are those of torchvision.transforms.v2's constructors.
std::vector<OperatorRow> MakeRows() {
  using enum OperatorKind;
  return {
      {.kind = kDecode, .name = "Decode", .meaning = "JPEG or PNG to pixels; first in the list"},
      {.kind = kResize,
       .name = "Resize",
       .optional = {"size", "shorterSide", "interpolation", "also"},
       .defaults = {.interpolation = Interpolation::kBilinear},
       .check = CheckResize,
       .meaning = "antialiased, to `size` or, with the aspect ratio kept, to `shorterSide`"},
      {.kind = kCenterCrop,
       .name = "CenterCrop",
       .required = {"size"},
       .optional = {"also"},
       .meaning = "the middle; black where the picture is smaller"},
      {.kind = kRandomResizedCrop,
       .name = "RandomResizedCrop",
       .required = {"size"},
       .optional = {"scale", "ratio", "interpolation", "also"},
       .defaults = {.interpolation = Interpolation::kBilinear,
                    .scale = Range{0.08, 1.0},
                    .ratio = Range{3.0 / 4.0, 4.0 / 3.0}},
       .meaning = "random share of the area and width/height ratio, resized to `size`"},
      {.kind = kHorizontalFlip,
       .name = "HorizontalFlip",
       .optional = {"probability", "also"},
       .defaults = {.probability = 0.5},
       .meaning = "left and right change places"},
      {.kind = kVerticalFlip,
       .name = "VerticalFlip",
       .optional = {"probability", "also"},
       .defaults = {.probability = 0.5},
       .meaning = "top and bottom change places"},
      {.kind = kRotate,
       .name = "Rotate",
       .required = {"degrees"},
       .optional = {"interpolation", "also"},
       .defaults = {.interpolation = Interpolation::kNearest},
       .meaning = "counter-clockwise by a random angle; black outside"},
      {.kind = kColorJitter,
       .name = "ColorJitter",
       .optional = {"brightness", "contrast", "saturation", "hue"},
       .check = CheckColorJitter,
       .meaning = "the given ones in random order: factors up to 60, and turns of the hue"},
      {.kind = kGrayscale,
       .name = "Grayscale",
       .optional = {"outputChannels", "probability"},
       .defaults = {.probability = 1.0},
       .complete = CompleteGrayscale,
       .check = CheckGrayscale,
       .meaning = "`outputChannels` is 1 or 3; by default 3 when `probability` is below 1"},
      {.kind = kGaussianBlur,
       .name = "GaussianBlur",
       .required = {"kernelSize"},
       .optional = {"sigma"},
       .defaults = {.sigma = Range{0.1, 2.0}},
       .meaning = "`kernelSize` is odd; `sigma` in pixels, at least 0.001"},
      {.kind = kRandomErasing,
       .name = "RandomErasing",
       .optional = {"probability", "scale", "ratio", "value"},
       .defaults =
           {.scale = Range{0.02, 0.33}, .ratio = Range{0.3, 3.3}, .probability = 0.5, .value = 0.0},
       .meaning = "fills one random box of `scale` of the area and `ratio` height/width"},
      {.kind = kRandAugment,
       .name = "RandAugment",
       .optional = {"operations", "magnitude"},
       .defaults = {.operations = 2, .magnitude = 9},
       .meaning = "that many random ones of: nothing, shears, translations, rotation, brightness, "
                  "colour, contrast, sharpness, posterize, solarize, auto-contrast, equalize"},
      {.kind = kNormalize,
       .name = "Normalize",
       .optional = {"mean", "std"},
       .meaning = "float32 (x / 255 - mean) / std per channel, of values in 0..1; one value stands "
                  "for all channels; default: ImageNet's for three channels, else 0.5"},
      {.kind = kCast, .name = "Cast", .required = {"type"}, .meaning = "to another element type"},
      {.kind = kDelay,
       .name = "Delay",
       .required = {"milliseconds"},
       .meaning = "sleeps without using a core: for scaling and fault tests"},
      {.kind = kPlugin,
       .name = "Plugin",
       .required = {"path", "name"},
       .optional = {"parameters"},
       .meaning = "an operator from a shared library: [plugins.md](plugins.md)"},
      {.kind = kPython,
       .name = "Python",
       .required = {"module", "function", "outputs"},
       .optional = {"path"},
       .check = CheckPython,
       .meaning = "a function of yours, on the CPU workers: "
                  "[operators.md](operators.md)"},
  };
}

}  // namespace

const std::vector<OperatorRow>& Operators() {
  static const auto& rows = *new std::vector<OperatorRow>(MakeRows());
  return rows;
}

const OperatorRow& RowOf(OperatorKind kind) { return Operators()[static_cast<size_t>(kind)]; }

const char* OperatorName(OperatorKind kind) { return RowOf(kind).name; }

const std::vector<std::pair<OperatorKind, std::string_view>>& EnumNames<OperatorKind>::Values() {
  using Values = std::vector<std::pair<OperatorKind, std::string_view>>;
  static const Values& values = *[] {
    auto* named = new Values;
    for (const OperatorRow& row : Operators()) named->emplace_back(row.kind, row.name);
    return named;
  }();
  return values;
}

bool HasPython(const std::vector<OperatorSpec>& operators) {
  return std::any_of(operators.begin(), operators.end(),
                     [](const OperatorSpec& spec) { return spec.op == OperatorKind::kPython; });
}

// An operator without an answer is an error of the compiler.
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
Geometry GeometryOf(OperatorKind kind) {
  using enum OperatorKind;
  switch (kind) {
    case kDecode:
    case kColorJitter:
    case kGrayscale:
    case kGaussianBlur:
    case kRandomErasing:
    case kNormalize:
    case kCast:
    case kDelay:
      return Geometry::kStays;
    case kResize:
    case kCenterCrop:
    case kRandomResizedCrop:
    case kHorizontalFlip:
    case kVerticalFlip:
    case kRotate:
      return Geometry::kMoves;
    case kRandAugment:
    case kPlugin:
    case kPython:
      return Geometry::kUnknown;
  }
  return Geometry::kUnknown;
}
#pragma GCC diagnostic pop

void FillDefaults(OperatorSpec& spec) {
  const OperatorRow& row = RowOf(spec.op);
  ForEachField<OperatorSpec>([&](const auto& field) {
    auto& value = spec.*(field.member);
    if (IsAbsent(value)) value = row.defaults.*(field.member);
  });
  if (row.complete != nullptr) row.complete(spec);
}

std::vector<FieldError> CheckOperator(const OperatorSpec& spec) {
  Findings findings;
  OperatorSpec decoded;
  DecodeOperator(EncodeObject(spec), decoded, findings);
  ValidateOperator(spec, "", findings);
  return std::move(findings.errors());
}

Range LimitsOfParameter(const std::string& parameter) {
  const SchemaNode& entry = JobSchema().Find("spec")->Find("pipeline")->element[0];
  const Limits& limits = entry.Find(parameter)->limits;
  return {limits.min, limits.max};
}

}  // namespace hetero::api
