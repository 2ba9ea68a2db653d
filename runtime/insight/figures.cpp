#include "runtime/insight/figures.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hetero::insight {
namespace {

constexpr char kNone[] = "-";

}  // namespace

bool Known(const std::optional<double>& value) {
  return value.has_value() && std::isfinite(*value);
}

std::string CountText(int64_t value) {
  std::string digits = absl::StrCat(value);
  const size_t sign = value < 0 ? 1 : 0;
  for (size_t i = digits.size(); i > sign + 3;) {
    i -= 3;
    digits.insert(i, 1, ',');
  }
  return digits;
}

std::string FixedText(double value, int decimals) {
  if (!std::isfinite(value)) return kNone;
  return absl::StrFormat("%.*f", decimals, value);
}

std::string NumberText(double value) {
  if (!std::isfinite(value)) return kNone;
  const double magnitude = std::abs(value);
  if (magnitude == 0) return "0";
  if (magnitude >= 9e18) return absl::StrFormat("%.2e", value);
  if (magnitude >= 999.5) return CountText(std::llround(value));
  if (magnitude < 1e-4) return absl::StrFormat("%.2e", value);
  // The digit count is taken after rounding to three digits, so that 9.996 is "10.0", not "10.00".
  const double rounded = std::stod(absl::StrFormat("%.2e", magnitude));
  const int exponent = static_cast<int>(std::floor(std::log10(rounded) + 1e-9));
  return FixedText(value, std::max(0, 2 - exponent));
}

std::string DurationText(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e12) return kNone;
  if (seconds == 0) return "0 s";
  if (seconds < 0.9995e-3) return absl::StrCat(NumberText(seconds * 1e6), " \u00b5s");
  if (seconds < 0.9995) return absl::StrCat(NumberText(seconds * 1e3), " ms");
  if (seconds < 99.95) return absl::StrCat(NumberText(seconds), " s");
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) return absl::StrFormat("%d min %02d s", whole / 60, whole % 60);
  return absl::StrFormat("%d h %02d min", whole / 3600, whole % 3600 / 60);
}

std::string BytesText(double bytes) {
  if (!std::isfinite(bytes)) return kNone;
  constexpr std::array<const char*, 6> kUnits = {"B", "kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  while (std::abs(bytes) >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? absl::StrFormat("%.0f B", bytes)
                   : absl::StrCat(NumberText(bytes), " ", kUnits[unit]);
}

std::string PercentText(double value) {
  if (!std::isfinite(value)) return kNone;
  return absl::StrCat(FixedText(value, 1), " %");
}

}  // namespace hetero::insight
