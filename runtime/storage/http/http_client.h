#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/clock.h"

// HTTP for object stores: no word of what an object is.
namespace hetero::storage {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpDeadlines {
  base::Duration connect = std::chrono::seconds(5);  // until there is a connection, TLS included
  base::Duration idle = std::chrono::seconds(10);    // in which no byte passes, in either direction
  base::Duration total = std::chrono::seconds(120);  // of one exchange
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;  // absolute and escaped; sent as it stands, "/../" too
  HttpHeaders headers;
  std::string_view body;  // of PUT and POST; outlives the call
  // Where the body of a 2xx reply goes. Empty: into HttpResponse::body.
  absl::Span<uint8_t> into;
  int64_t most_body_bytes = 1 << 20;  // of HttpResponse::body, where that is a 2xx reply's
  int most_redirects = 0;
  // By http_proxy, https_proxy and no_proxy. Never to a loopback address.
  bool use_proxy = true;
  HttpDeadlines deadlines;
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case, the last of equal names
  std::string body;                            // of other replies its first 64 KiB
  int64_t received = 0;                        // bytes that were put into HttpRequest::into
  // The body had more bytes than there was room for; those were not read.
  bool overflow = false;

  // "" where there is none.
  const std::string& Header(const std::string& lower_case_name) const {
    static const std::string none;
    const auto found = headers.find(lower_case_name);
    return found == headers.end() ? none : found->second;
  }
};

// Safe from any thread; a call blocks its caller only.
class HttpClient {
 public:
  virtual ~HttpClient() = default;

  // One exchange, to its last byte. Any status is a response. Errors say what failed, with host
  // and port but never with headers or queries, which may be secret: kUnavailable (no connection,
  // reset, ended inside a reply), kDeadlineExceeded, kUnauthenticated (the server's certificate),
  // kInvalidArgument (what is no URL), kResourceExhausted (headers above 64 KiB).
  virtual absl::StatusOr<HttpResponse> Send(const HttpRequest& request) = 0;
};

}  // namespace hetero::storage
