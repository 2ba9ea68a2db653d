#include "runtime/pipeline/colour.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "runtime/pipeline/exact_math.h"
#include "runtime/pipeline/parameter_checks.h"

namespace hetero::pipeline {
namespace {

using Table = std::array<uint8_t, 256>;

// v * factor + offset, clamped and truncated, in float32 like torchvision's _blend.
Table BlendTable(double factor, float offset) {
  Table table;
  for (int v = 0; v < 256; ++v) {
    const float value = float(v) * float(factor) + offset;
    table[size_t(v)] = uint8_t(std::clamp(value, 0.0f, 255.0f));
  }
  return table;
}

void Map(const Table& table, Image* image) {
  for (uint8_t& v : image->bytes) v = table[v];
}

// Mean luma; of the values themselves for one channel.
float MeanLuma(const Image& image) {
  uint64_t sum = 0;
  const uint8_t* p = image.bytes.data();
  const size_t size = image.bytes.size();
  const size_t channels = size_t(image.shape.channels);
  if (channels == 3) {
    for (size_t i = 0; i < size; i += 3) sum += Luma(p[i], p[i + 1], p[i + 2]);
  } else {
    for (size_t i = 0; i < size; ++i) sum += p[i];
  }
  const size_t pixels = size / channels;
  return float(double(sum) / double(pixels));
}

// Numbers with 16 fractional bits.
constexpr int32_t kOne = 1 << 16;

// torchvision scales back to uint8 by 255.999 / 255 and truncates; kBack has 14 fractional bits.
uint8_t FromFixed(int32_t value) {
  constexpr int64_t kBack = 16448;
  return uint8_t((int64_t{value} * kBack) >> 30);
}

// One pixel in HSV, turned by `turn` sixths of the circle (16 fractional bits, in [0, 6 * kOne)),
// back in RGB.
void TurnHue(uint32_t turn, uint8_t* pixel) {
  const int32_t r = pixel[0], g = pixel[1], b = pixel[2];
  const int32_t high = std::max({r, g, b});
  const int32_t range = high - std::min({r, g, b});
  if (range == 0) return;
  // Position on the hexagon of hues, counted from red.
  int32_t sector = 0, distance = 0;
  if (high == r) {
    distance = g - b;
  } else if (high == g) {
    sector = 2;
    distance = b - r;
  } else {
    sector = 4;
    distance = r - g;
  }
  // + 6 keeps the dividend positive, so that the division rounds down.
  const uint32_t hue =
      (uint32_t((sector + 6) * range + distance) * uint32_t{kOne} + uint32_t(range) / 2) /
          uint32_t(range) +
      turn;
  const uint32_t fraction = hue % uint32_t{kOne};
  const int32_t v = high * kOne;
  const int32_t p = v - range * kOne;
  const int32_t q = v - range * int32_t(fraction);
  const int32_t t = p + range * int32_t(fraction);
  const std::array<int32_t, 4> vpqt = {v, p, q, t};
  static constexpr uint8_t kSelect[6][3] = {{0, 3, 1}, {2, 0, 1}, {1, 0, 3},
                                            {1, 2, 0}, {3, 1, 0}, {0, 1, 2}};
  const uint8_t* select = kSelect[hue / uint32_t{kOne} % 6];
  for (int c = 0; c < 3; ++c) pixel[c] = FromFixed(vpqt[select[c]]);
}

}  // namespace

void AdjustBrightness(double factor, Image* image) { Map(BlendTable(factor, 0), image); }

void AdjustContrast(double factor, Image* image) {
  Map(BlendTable(factor, MeanLuma(*image) * float(1 - factor)), image);
}

void AdjustSaturation(double factor, Image* image) {
  if (image->shape.channels != 3) return;
  const int32_t own = int32_t(RoundHalfEven(factor * kOne));
  const int32_t grey = kOne - own;
  // `own` is off by half a unit at most, a blend by 128: without this, one that is a whole number
  // would often be truncated to the level below.
  constexpr int32_t kGuard = 128;
  uint8_t* p = image->bytes.data();
  for (size_t i = 0; i < image->bytes.size(); i += 3) {
    const int32_t luma = Luma(p[i], p[i + 1], p[i + 2]) * grey + kGuard;
    for (size_t c = 0; c < 3; ++c) {
      p[i + c] = uint8_t(std::clamp((p[i + c] * own + luma) >> 16, 0, 255));
    }
  }
}

void AdjustHue(double turns, Image* image) {
  if (image->shape.channels != 3) return;
  const int64_t circle = 6 * int64_t{kOne};
  const uint32_t turn =
      uint32_t((RoundHalfEven(turns * double(circle)) % circle + circle) % circle);
  for (size_t i = 0; i < image->bytes.size(); i += 3) TurnHue(turn, &image->bytes[i]);
}

absl::StatusOr<api::ImageShape> ColorJitter::OutputShape(const api::ImageShape& input) const {
  if (input.channels != 1 && input.channels != 3) {
    return absl::InvalidArgumentError(absl::StrCat("takes 1 or 3 channels, not ", input.channels));
  }
  return input;
}

absl::Status ColorJitter::Apply(const ImageView& in, Image* out, job::RandomStream& random) const {
  using Adjust = void (*)(double, Image*);
  struct Step {
    Adjust adjust;
    double factor;
  };
  const auto draw = [&random](const std::optional<api::Range>& range, Adjust adjust) {
    return range ? Step{adjust, random.Uniform(range->min, range->max)} : Step{nullptr, 0};
  };
  std::array<Step, 4> steps;
  steps[0] = draw(ranges_.brightness, AdjustBrightness);
  steps[1] = draw(ranges_.contrast, AdjustContrast);
  steps[2] = draw(ranges_.saturation, AdjustSaturation);
  steps[3] = draw(ranges_.hue, AdjustHue);
  for (uint32_t i = 3; i > 0; --i) std::swap(steps[i], steps[random.Below(i + 1)]);
  Copy(in, out);
  for (const Step& step : steps) {
    if (step.adjust != nullptr) step.adjust(step.factor, out);
  }
  return absl::OkStatus();
}

absl::StatusOr<Operators> MakeColorJitter(const api::OperatorSpec& spec,
                                          const OperatorContext& context) {
  const auto check = [](const char* name, const std::optional<api::Range>& range) {
    return range ? CheckAtMost(name, *range, kMaxColourFactor) : absl::OkStatus();
  };
  HETERO_RETURN_IF_ERROR(check("brightness", spec.brightness));
  HETERO_RETURN_IF_ERROR(check("contrast", spec.contrast));
  HETERO_RETURN_IF_ERROR(check("saturation", spec.saturation));
  if (context.split == job::Split::kValidation) return Operators();
  return One<ColorJitter>(
      ColorJitter::Ranges{spec.brightness, spec.contrast, spec.saturation, spec.hue});
}

}  // namespace hetero::pipeline
