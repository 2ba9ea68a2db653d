#include "api/money.h"

#include <limits>

namespace hetero::api {
namespace {

constexpr int kPlaces = 6;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Of a number that fits or is cut to what does.
int64_t WithDigit(int64_t number, int digit) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return number > (kMost - digit) / 10 ? kMost : number * 10 + digit;
}

}  // namespace

std::optional<int64_t> MicroDollars(std::string_view decimal) {
  const size_t point = decimal.find('.');
  const std::string_view whole = decimal.substr(0, point);
  const std::string_view part = point == decimal.npos ? "" : decimal.substr(point + 1);
  if (whole.empty() || (point != decimal.npos && part.empty())) return std::nullopt;
  int64_t micro = 0;
  for (const char c : whole) {
    if (!IsDigit(c)) return std::nullopt;
    micro = WithDigit(micro, c - '0');
  }
  for (const char c : part) {
    if (!IsDigit(c)) return std::nullopt;
  }
  for (size_t i = 0; i < kPlaces; ++i)
    micro = WithDigit(micro, i < part.size() ? part[i] - '0' : 0);
  const bool up = part.size() > kPlaces && part[kPlaces] >= '5';
  return up && micro < std::numeric_limits<int64_t>::max() ? micro + 1 : micro;
}

}  // namespace hetero::api
