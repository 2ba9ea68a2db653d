#include "operator/program/option_values.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/time/time.h"

namespace hetero::program {
namespace {

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsLetterOrDigit(char c) { return IsLowerOrDigit(c) || (c >= 'A' && c <= 'Z'); }

bool IsLabelValue(std::string_view value) {
  if (value.empty()) return true;
  return value.size() <= 63 && IsLetterOrDigit(value.front()) && IsLetterOrDigit(value.back()) &&
         std::ranges::all_of(
             value, [](char c) { return IsLetterOrDigit(c) || c == '-' || c == '_' || c == '.'; });
}

bool IsLabelKey(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos) return !key.empty() && IsLabelValue(key);
  return IsObjectName(key.substr(0, slash)) && slash + 1 < key.size() &&
         IsLabelValue(key.substr(slash + 1));
}

}  // namespace

absl::StatusOr<base::Duration> ParseDuration(const std::string& text) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) || duration <= absl::ZeroDuration() ||
      duration > absl::Hours(24 * 365)) {
    return absl::InvalidArgumentError("'" + text +
                                      "' is not a positive duration such as 15s or 1m30s");
  }
  return absl::ToChronoNanoseconds(duration);
}

std::string FormatDuration(base::Duration duration) {
  return absl::FormatDuration(absl::FromChrono(duration));
}

absl::StatusOr<std::pair<std::string, int>> ParseListenAddress(const std::string& text) {
  const absl::Status wrong = absl::InvalidArgumentError(
      "'" + text +
      "' is not an address such as :8080, 10.0.0.7:8080 or [::1]:8080 (port 0 to 65535)");
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon + 1 == text.size()) return wrong;
  int port = -1;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, port);
  if (error != std::errc() || rest != end || port < 0 || port > 65535) return wrong;
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string::npos) {
    return wrong;
  }
  return std::pair(std::move(host), port);
}

absl::StatusOr<std::map<std::string, std::string>> ParseLabels(
    const std::vector<std::string>& pairs) {
  std::map<std::string, std::string> labels;
  for (const std::string& pair : pairs) {
    const size_t equals = pair.find('=');
    const std::string key = pair.substr(0, equals);
    if (equals == std::string::npos || !IsLabelKey(key) || !IsLabelValue(pair.substr(equals + 1))) {
      return absl::InvalidArgumentError(
          "'" + pair + "' is not a label such as app.kubernetes.io/name=hetero-operator");
    }
    labels[key] = pair.substr(equals + 1);
  }
  if (labels.empty()) return absl::InvalidArgumentError("at least one key=value is needed");
  return labels;
}

absl::StatusOr<log::Level> ParseLevel(const std::string& text) {
  if (text == "debug") return log::Level::kDebug;
  if (text == "info") return log::Level::kInfo;
  if (text == "warning") return log::Level::kWarning;
  if (text == "error") return log::Level::kError;
  return absl::InvalidArgumentError("'" + text + "' is not one of debug, info, warning, error");
}

bool IsNamespaceName(std::string_view name) {
  return !name.empty() && name.size() <= 63 && IsLowerOrDigit(name.front()) &&
         IsLowerOrDigit(name.back()) &&
         std::ranges::all_of(name, [](char c) { return IsLowerOrDigit(c) || c == '-'; });
}

bool IsObjectName(std::string_view name) {
  return !name.empty() && name.size() <= 253 && IsLowerOrDigit(name.front()) &&
         IsLowerOrDigit(name.back()) && std::ranges::all_of(name, [](char c) {
           return IsLowerOrDigit(c) || c == '-' || c == '.';
         });
}

}  // namespace hetero::program
