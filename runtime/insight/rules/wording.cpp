#include "runtime/insight/rules/wording.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/insight/figures.h"

namespace hetero::insight {

std::string Count(int64_t count, const std::string& noun) {
  return absl::StrCat(CountText(count), " ", noun, count == 1 ? "" : "s");
}

std::string RateText(double samples_per_second) {
  constexpr double kFewest = 0.01;
  if (samples_per_second < kFewest) return "less than 0.01 samples/s";
  return absl::StrCat(NumberText(samples_per_second), " samples/s");
}

std::string SettingText(double value) {
  double digits = 0;
  if (!absl::SimpleAtod(absl::StrFormat("%.2e", value), &digits)) return NumberText(value);
  return absl::StrFormat("%.12g", digits);
}

std::string TimesText(double factor) { return absl::StrCat(FixedText(factor, 1), " times"); }

std::string ShareText(double share) { return absl::StrCat(FixedText(100 * share, 0), " %"); }

std::string MemberText(const std::string& member, const std::string& node) {
  return node.empty() ? std::string(member) : absl::StrCat(member, " on node ", node);
}

}  // namespace hetero::insight
