#pragma once

#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"

// HTTP to one API server. No word of this project's domain below operator/kube.
namespace hetero::kube {

struct Request {
  std::string method = "GET";
  std::string path;  // "/api/v1/namespaces/x/pods?limit=500", already escaped
  std::string body;
  std::string content_type;  // of the body; empty without one
  std::string accept = "application/json";
  std::string user_agent;  // empty: none is sent
};

struct Response {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// Safe from any thread; every call blocks its caller only. A reply with an HTTP error is a
// Response, not an error. Errors are: kUnavailable (no connection, reset, closed before or inside a
// reply, with the server's address), kDeadlineExceeded, kCancelled (stop), kUnauthenticated (the
// server's certificate or our credentials), kResourceExhausted (a line or body above the cap).
class Transport {
 public:
  virtual ~Transport() = default;

  // One request within `timeout`, counted from the call to the last byte. Redirects are not
  // followed. A request may reach the server twice (a pooled connection that closes before the
  // reply): callers use only calls that are safe to repeat. Bodies above 256 MiB are refused.
  virtual absl::StatusOr<Response> Send(const Request& request, base::Duration timeout,
                                        std::stop_token stop = {}) = 0;

  // A reply read line by line as it arrives, without the line ends; lines above 16 MiB are an
  // error, empty lines are skipped. Ends with: the response without its body when the server ends
  // it cleanly or on_line returned false; with status and body when it is not 200; kUnavailable
  // when the head does not come within `idle`; kDeadlineExceeded when nothing at all arrives for
  // `idle` after it, or the whole lasts longer than `limit`.
  using OnLine = std::function<bool(std::string_view line)>;
  virtual absl::StatusOr<Response> Stream(const Request& request, base::Duration idle,
                                          base::Duration limit, const OnLine& on_line,
                                          std::stop_token stop) = 0;

  // "10.96.0.1:443", for metrics and messages.
  virtual std::string host() const { return ""; }
};

}  // namespace hetero::kube
