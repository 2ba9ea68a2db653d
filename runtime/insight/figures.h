#pragma once

#include <cstdint>
#include <optional>
#include <string>

// Numbers as a person reads them, for the report page and the terminal. Pure functions. A number
// that is not finite gives "-".
namespace hetero::insight {

// Whether there is a number to show.
bool Known(const std::optional<double>& value);

// 1234567 -> "1,234,567".
std::string CountText(int64_t value);

// Three significant digits in plain notation: 0.0412, 4.13, 41.3, 413, 4,130.
std::string NumberText(double value);

// `decimals` digits after the point.
std::string FixedText(double value, int decimals);

// Seconds as "412 µs", "31.2 ms", "4.13 s", "2 min 05 s" or "3 h 12 min".
std::string DurationText(double seconds);

// Bytes in powers of 1000: "512 B", "18.4 MB", "1.21 GB".
std::string BytesText(double bytes);

// `value` in 0..100, as "3.1 %".
std::string PercentText(double value);

}  // namespace hetero::insight
