#include "runtime/process/log_lines.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "absl/strings/str_replace.h"
#include "base/recent_lines.h"
#include "runtime/process/secret_variables.h"

namespace hetero::process {
namespace {

constexpr size_t kMostLinesTold = 50;
constexpr size_t kMostLineBytes = 16 << 10;
// A shorter value would blacken ordinary words, and is no secret.
constexpr size_t kShortestSecret = 6;

// As the process began with them: it changes none.
const std::vector<std::string>& SecretValues() {
  static const auto* const values = [] {
    auto* found = new std::vector<std::string>;
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
      const std::string_view text = *variable;
      const size_t equals = text.find('=');
      if (equals == std::string_view::npos || !IsSecretVariable(text.substr(0, equals))) continue;
      found->emplace_back(text.substr(equals + 1));
    }
    return found;
  }();
  return *values;
}

}  // namespace

std::string WithoutSecretValues(std::string text, const std::vector<std::string>& secrets) {
  std::vector<std::string> longest_first = secrets;
  std::sort(longest_first.begin(), longest_first.end(),
            [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (const std::string& secret : longest_first) {
    if (secret.size() >= kShortestSecret) absl::StrReplaceAll({{secret, "***"}}, &text);
  }
  return text;
}

void AddLogLines(v1::Heartbeat& heartbeat) {
  for (log::RecentLine& line : log::LinesOfThisProcess().Take(kMostLinesTold, kMostLineBytes)) {
    v1::LogLine& told = *heartbeat.add_log_lines();
    const auto since = line.time.time_since_epoch();
    told.set_unix_ns(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
    told.set_text(WithoutSecretValues(std::move(line.text), SecretValues()));
  }
}

}  // namespace hetero::process
