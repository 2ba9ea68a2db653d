#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/log.h"

// Values of flags that are more than a word or a number. Errors say what is expected, without the
// flag's name.
namespace hetero::program {

// As in Go: "15s", "1m30s", "500ms". Positive.
absl::StatusOr<base::Duration> ParseDuration(const std::string& text);
std::string FormatDuration(base::Duration duration);

// "10.0.0.7:8080", "[::1]:8080" (the host without its brackets), ":8080" (an empty host).
absl::StatusOr<std::pair<std::string, int>> ParseListenAddress(const std::string& text);

// {"a=b", "c=d"}: labels as Kubernetes accepts them; at least one.
absl::StatusOr<std::map<std::string, std::string>> ParseLabels(
    const std::vector<std::string>& pairs);

absl::StatusOr<log::Level> ParseLevel(const std::string& text);

// Names of namespaces (RFC 1123 labels) and of other objects (RFC 1123 subdomains).
bool IsNamespaceName(std::string_view name);
bool IsObjectName(std::string_view name);

}  // namespace hetero::program
