#include "runtime/storage/http/url.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hetero::storage {
namespace {

bool IsUnreserved(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_' ||
         c == '~';
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsHost(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
  });
}

bool IsIpv6(std::string_view host) {
  return host.find(':') != std::string_view::npos &&
         std::all_of(host.begin(), host.end(), [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c)) || c == ':' || c == '.';
         });
}

}  // namespace

std::string EscapeUrl(std::string_view text, bool keep_slashes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    if (IsUnreserved(c) || (keep_slashes && c == '/')) {
      escaped += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      escaped += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return escaped;
}

absl::StatusOr<std::string> UnescapeForm(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      plain += ' ';
    } else if (text[i] == '%') {
      const int high = i + 1 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return absl::InvalidArgumentError("a \"%\" without two hexadecimal digits");
      }
      plain += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::string SortedQuery(const Query& query) {
  Query escaped;
  escaped.reserve(query.size());
  for (const auto& [name, value] : query) {
    escaped.emplace_back(EscapeUrl(name, false), EscapeUrl(value, false));
  }
  std::sort(escaped.begin(), escaped.end());
  std::string text;
  for (const auto& [name, value] : escaped) {
    absl::StrAppend(&text, text.empty() ? "" : "&", name, "=", value);
  }
  return text;
}

absl::StatusOr<Url> ParseUrl(std::string_view text) {
  Url url;
  const size_t colon = text.find("://");
  url.scheme = absl::AsciiStrToLower(std::string(text.substr(0, colon)));
  if (colon == std::string_view::npos || (url.scheme != "http" && url.scheme != "https")) {
    return absl::InvalidArgumentError("a URL begins with https:// or http://");
  }
  std::string_view rest = text.substr(colon + 3);
  std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  rest.remove_prefix(authority.size());
  if (authority.find('@') != std::string_view::npos) {
    return absl::InvalidArgumentError("a URL with a user or a password in it is not taken");
  }
  const std::string lower = absl::AsciiStrToLower(std::string(authority));
  std::string_view port;
  bool is_host;
  if (absl::StartsWith(lower, "[")) {
    const size_t end = lower.find(']');
    url.host = lower.substr(1, end == std::string::npos ? end : end - 1);
    if (end != std::string::npos) port = std::string_view(lower).substr(end + 1);
    is_host = end != std::string::npos && IsIpv6(url.host);
  } else {
    url.host = lower.substr(0, lower.find(':'));
    port = std::string_view(lower).substr(url.host.size());
    is_host = IsHost(url.host);
  }
  int number = url.scheme == "https" ? 443 : 80;
  const int usual = number;
  if (!is_host || (!port.empty() && (port.front() != ':' || port.size() > 6 ||
                                     !absl::SimpleAtoi(std::string(port.substr(1)), &number) ||
                                     number < 1 || number > 65535))) {
    return absl::InvalidArgumentError(absl::StrCat("\"", lower, "\" is no host with a port"));
  }
  url.authority = lower.substr(0, lower.size() - port.size());
  if (number != usual) absl::StrAppend(&url.authority, ":", number);
  // Presigned URLs have their secret there.
  if (rest.find_first_of("?#") != std::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("a URL with a query or a fragment is no folder of ", url.authority));
  }
  for (const char c : rest) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c)) || c == '"' || c == '<' || c == '>') {
      return absl::InvalidArgumentError(
          absl::StrCat("the path on ", url.authority, " is not escaped: write spaces as %20"));
    }
  }
  while (absl::EndsWith(absl::string_view(rest.data(), rest.size()), "/")) rest.remove_suffix(1);
  url.path = std::string(rest);
  return url;
}

bool IsLoopback(std::string_view host) {
  const absl::string_view text(host.data(), host.size());
  if (text == "localhost" || text == "::1" || absl::EndsWith(text, ".localhost")) return true;
  // Not a name like 127.example.com.
  return absl::StartsWith(text, "127.") &&
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace hetero::storage
