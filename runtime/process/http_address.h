#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hetero::process {

struct HttpAddress {
  std::string host;
  int port = 0;
};
// "host:port", "[::1]:port"; an empty host and 0.0.0.0 mean all addresses. kInvalidArgument names
// `what` ("metrics") and the text.
absl::StatusOr<HttpAddress> ParseHttpAddress(const std::string& what, const std::string& text);

}  // namespace hetero::process
