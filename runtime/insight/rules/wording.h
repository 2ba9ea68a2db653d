#pragma once

#include <cstdint>
#include <string>

// Words that sentences of several rules share. Pure functions; numbers are figures.h's.
namespace hetero::insight {

// "1 CPU worker", "3 CPU workers": the plural is the noun with an s.
std::string Count(int64_t count, const std::string& noun);

// "118 samples/s".
std::string RateText(double samples_per_second);

// A setting: three digits, without zeros behind them: "8", "7.5", "0.001", "12300".
std::string SettingText(double value);

// "1.7 times".
std::string TimesText(double factor);

// The share 0..1 as a whole percentage, "38 %".
std::string ShareText(double share);

// "cpu-0 on node n7", without a node that is not known.
std::string MemberText(const std::string& member, const std::string& node);

}  // namespace hetero::insight
