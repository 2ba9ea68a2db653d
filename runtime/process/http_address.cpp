#include "runtime/process/http_address.h"

#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hetero::process {

absl::StatusOr<HttpAddress> ParseHttpAddress(const std::string& what, const std::string& text) {
  const size_t colon = text.rfind(':');
  int port = -1;
  if (colon != std::string::npos) {
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + colon + 1, end, port);
    if (parsed.ec != std::errc() || parsed.ptr != end) port = -1;
  }
  if (port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " address \"", text, "\": expected HOST:PORT"));
  }
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return HttpAddress{std::move(host), port};
}

}  // namespace hetero::process
