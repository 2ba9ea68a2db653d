#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace hetero::storage {

// RFC 3986: all bytes but letters, digits and "-._~" become "%XX", "/" too unless it is kept.
std::string EscapeUrl(std::string_view text, bool keep_slashes);

// "%XX" and "+" as a form has them. kInvalidArgument for a "%" without two digits.
absl::StatusOr<std::string> UnescapeForm(std::string_view text);

using Query = std::vector<std::pair<std::string, std::string>>;
// "a=1&b=" with names and values escaped, sorted by bytes: as it is sent, and as AWS signs it.
std::string SortedQuery(const Query& query);

// "https://Host:443/a%20b" as https, "host", "/a%20b".
struct Url {
  std::string scheme;     // "http" or "https"
  std::string authority;  // lower case, as in a Host header: the scheme's own port is left out
  std::string host;       // without the port; an IPv6 address without brackets
  std::string path;       // as it stands, without slashes at the end: "" or "/..."

  std::string origin() const { return scheme + "://" + authority; }
};
// kInvalidArgument, without the text where that could hold a password: no http or https, no host,
// user or password, query or fragment, or a byte that a URL does not have.
absl::StatusOr<Url> ParseUrl(std::string_view text);

// 127.0.0.0/8, ::1, localhost and what ends with .localhost.
bool IsLoopback(std::string_view host);

}  // namespace hetero::storage
