#include <cstdio>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "api/job_status.h"

namespace hetero::api {
namespace {

using std::chrono::days;
using std::chrono::seconds;

// Reads a time from left to right; after the first mismatch `ok` is false and stays so.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }

  int Digits(size_t count, int low, int high) {
    int value = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!NextIsDigit()) return Fail();
      value = value * 10 + (Take() - '0');
    }
    return value < low || value > high ? Fail() : value;
  }

  // One of `allowed`, or '\0' and a failure.
  char One(std::string_view allowed) {
    if (rest_.empty() || allowed.find(rest_.front()) == std::string_view::npos) {
      Fail();
      return '\0';
    }
    return Take();
  }

  // ".5", ".123456789012" or nothing; digits beyond nanoseconds are dropped.
  base::Duration Fraction() {
    if (rest_.empty() || rest_.front() != '.') return {};
    Take();
    if (!NextIsDigit()) Fail();
    int64_t unit = 100'000'000, nanoseconds = 0;
    while (NextIsDigit()) {
      nanoseconds += unit * (Take() - '0');
      unit /= 10;
    }
    return std::chrono::nanoseconds(nanoseconds);
  }

 private:
  bool NextIsDigit() const {
    return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9';
  }
  char Take() {
    const char taken = rest_.front();
    rest_.remove_prefix(1);
    return taken;
  }
  int Fail() {
    ok_ = false;
    rest_ = {};
    return 0;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace

std::string FormatTime(base::WallTime time) {
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<seconds>(time - day));
  char text[48];
  std::snprintf(text, sizeof(text), "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text;
}

absl::StatusOr<base::WallTime> ParseTime(std::string_view text) {
  Reader reader(text);
  // WallTime counts nanoseconds in 64 bits: 1677-09-21 to 2262-04-11.
  const int year = reader.Digits(4, 1678, 2261);
  reader.One("-");
  const int month = reader.Digits(2, 1, 12);
  reader.One("-");
  const int day = reader.Digits(2, 1, 31);
  reader.One("Tt");
  const int hour = reader.Digits(2, 0, 23);
  reader.One(":");
  const int minute = reader.Digits(2, 0, 59);
  reader.One(":");
  const int second = reader.Digits(2, 0, 59);
  const base::Duration fraction = reader.Fraction();
  const char zone = reader.One("Zz+-");
  seconds offset{0};
  if (zone == '+' || zone == '-') {
    const int offset_hours = reader.Digits(2, 0, 23);
    reader.One(":");
    const int offset_minutes = reader.Digits(2, 0, 59);
    offset = std::chrono::hours(offset_hours) + std::chrono::minutes(offset_minutes);
    if (zone == '-') offset = -offset;
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!reader.ok() || !reader.at_end() || !date.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", std::string(text), "\" is no time like 2026-01-01T00:00:00Z"));
  }
  return std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         seconds(second) - offset + fraction;
}

}  // namespace hetero::api
