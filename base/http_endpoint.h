#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/event_stream.h"
#include "base/http_connections.h"
#include "base/http_host.h"
#include "base/listen_socket.h"
#include "base/metrics.h"

namespace hetero::metrics {

struct HttpRequest {
  std::string path;
  std::map<std::string, std::string> query;  // the last of equal names
  HttpOrigin origin;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::map<std::string, std::string> headers;  // further ones
};

// A plain HTTP port of a process: /healthz (200 while the process answers), /readyz (200, or 503
// with the reason), with a registry /metrics (Prometheus), and what else is registered. GET only.
// Handlers run on the endpoint's one thread, so they are to be quick. A caller that sends or reads
// slowly keeps nobody else waiting (HttpLimits). httplib stays inside http_endpoint.cpp.
class HttpEndpoint {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;
  using Readiness = std::function<absl::Status()>;
  // What a request gets in the place of its answer; nothing: it is answered.
  using Guard = std::function<std::optional<HttpResponse>(const HttpRequest&)>;

  explicit HttpEndpoint(HttpLimits limits = {});
  // `registry` outlives the endpoint.
  explicit HttpEndpoint(const Registry& registry, HttpLimits limits = {});
  ~HttpEndpoint();  // stops

  // Before Start() only.
  void Handle(const std::string& path, Handler handler);
  // Who gets `path` is added to `stream`, which outlives the endpoint; 503 when that is full.
  void HandleStream(const std::string& path, EventStream& stream);
  // Before all paths, /healthz and the others of this class included. One per endpoint.
  void SetGuard(Guard guard);

  // At any time. Without it the endpoint is ready as soon as it is started.
  void SetReadiness(Readiness readiness);

  // Binds and serves. `address` as base::ListenOn() takes it: "", "0.0.0.0" and "::" are all of
  // the machine's, IPv6 included. `port` 0 takes a free one. An error names address and port when
  // they cannot be bound. Call once.
  absl::Status Start(const std::string& address, int port);
  // The same on a socket that listens and does not block.
  absl::Status Start(base::Socket listener);
  // The bound port; 0 before Start().
  int port() const;
  // Closes the port and all connections, after the handler that runs. May be called again.
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The guard of a port that people read with a browser: 403 for who is called by a name that a page
// of somebody else's may have (IsKnownHost).
std::optional<HttpResponse> RefuseUnknownHosts(const HttpRequest& request);

}  // namespace hetero::metrics
