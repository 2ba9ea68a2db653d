#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "base/metrics.h"

namespace hetero::metrics {

struct HttpRequest {
  std::string path;
  std::map<std::string, std::string> query;  // the last of equal names
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// The plain HTTP port of a process: /metrics (Prometheus), /healthz (200 while the process
// answers), /readyz (200, or 503 with the reason) and what else is registered. GET only. Handlers
// run on the endpoint's threads, several at once. httplib stays inside http_endpoint.cpp.
class HttpEndpoint {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;
  using Readiness = std::function<absl::Status()>;
  // The next piece of one connection's body; empty ends the response. It must return soon after
  // `stop` is requested, which Stop() does.
  using NextChunk = std::function<std::optional<std::string>(std::stop_token stop)>;

  // `registry` outlives the endpoint. Each open stream takes one of `threads`.
  explicit HttpEndpoint(const Registry& registry, int threads = 4);
  ~HttpEndpoint();  // stops

  // Before Start() only.
  void Handle(const std::string& path, Handler handler);
  // A response without a known end, such as text/event-stream; `open` is called per connection.
  void HandleStream(const std::string& path, const std::string& content_type,
                    std::function<NextChunk()> open);

  // At any time. Without it the endpoint is ready as soon as it is started.
  void SetReadiness(Readiness readiness);

  // Binds and serves. `port` 0 takes a free one. An error names address and port when they
  // cannot be bound. Call once.
  absl::Status Start(const std::string& address, int port);
  // The bound port; 0 before Start().
  int port() const;
  // Ends streams, closes the port and waits for running handlers. May be called again.
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hetero::metrics
